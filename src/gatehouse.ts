import type { ManagerType } from '../schema/api/secret-references.ts'
import type { Config } from '../schema/config.ts'
import type { Audited } from './audit/audited.ts'
import { auditKeys } from './audit/keys.ts'
import { openAudit } from './audit/open.ts'
import type { AuditReader } from './audit/reader.ts'
import type { Refusals } from './audit/refusals.ts'
import { createTrailCheck, type TrailCheck } from './audit/scheduled-verify.ts'
import type { Uses } from './audit/uses.ts'
import { hasOldAnswers, pruneAnswers } from './auth/idempotency.ts'
import { createKeys, type Keys } from './auth/keys.ts'
import { createRefusedKeys, type RefusedKeys } from './auth/refused-keys.ts'
import type { LoadedConfig } from './config/load.ts'
import { createDigest } from './crypto/digest.ts'
import { type Keyring, type KnownKeys, openKeyring } from './crypto/keyring.ts'
import { type MasterKeys, readMasterKeys } from './crypto/master-key.ts'
import type { Admit } from './db/admit.ts'
import type { Change, Database, Reader } from './db/database.ts'
import { type DatabaseOptions, openDatabase } from './db/open.ts'
import { GatehouseError } from './errors.ts'
import { createClientIp } from './http/client-ip.ts'
import { createMetrics, type Metrics } from './http/metrics.ts'
import { describeError, type Log } from './log.ts'
import { createMailer, type Mailer } from './mail/mailer.ts'
import { createLastUsed, type LastUsed } from './metering/last-used.ts'
import { createOutbound } from './outbound/outbound.ts'
import type { Listener } from './outbound/own-listeners.ts'
import { type ModelTable, modelTable } from './prompts/models.ts'
import { createRegistry, type Registry } from './prompts/registry.ts'
import type { SecretManager } from './secret-managers/manager.ts'
import { MANAGERS } from './secret-managers/registry.ts'
import { createSecretValues, type SecretValues } from './secret-managers/values.ts'
import { createLiveReferences, type LiveReferences } from './secret-references/live.ts'

/** Everything that a command or a request works with, opened once, in order. */
export interface Gatehouse {
  config: Config
  log: Log
  dialect: Database['dialect']
  read: Reader
  audited: Audited
  refusals: Refusals
  uses: Uses
  /** the audit trail, read beside everything else */
  listAuditRows: AuditReader['list']
  /** whether a required `audit.sink` takes no rows, so that changes are refused */
  isAuditSinkMissing(): boolean
  trailCheck: TrailCheck
  keys: Keys
  refusedKeys: RefusedKeys
  lastUsed: LastUsed
  /** forgets answers to requests with an Idempotency-Key that are too old; `now` in UTC milliseconds */
  pruneAnswers(now: number): Promise<void>
  registry: Registry
  models: ModelTable
  secretReferences: LiveReferences
  secretValues: SecretValues
  metrics: Metrics
  mailer: Mailer
  /** whether `bootstrap` has been run */
  initialised(): boolean
  /** opens the keyring and fills the caches; at start, and right after bootstrap */
  initialise(): Promise<void>
  /** opens what is new in the keyring; part of `initialise`, and after a rotation */
  loadKeyring(): Promise<void>
  /** @throws StartError when the source cannot be read */
  masterKeys(): MasterKeys
  /** @throws GatehouseError before bootstrap */
  keyring(): Keyring
  /** the digest under which a clear API key is stored */
  digestKey(clear: string): string
  /** @throws GatehouseError `not_initialised` before bootstrap, `stale` when changes of other nodes could not be read for too long */
  assertServing(): void
  /** the peer's address, set by the server; null on a unix socket */
  peerIp(request: Request): string | null
  /** whether a request came over `server.unix_socket`, which the server knows */
  cameOverSocket(request: Request): boolean
  /** the client's address: the peer's, or what one of `server.trusted_proxies` says (HT-10) */
  clientIp(request: Request): string | null
  /** where this process listens: nothing that it sends goes there */
  ownListeners(): readonly Listener[]
  /** lets an answer wait for a secret manager, whatever `server.idle_timeout_seconds` says; set by the server */
  mayTakeLong(request: Request): void
  /** where people reach this server, without a trailing slash: `server.public_url`, or what the server listens on */
  publicUrl(): string
  /** throws when storage takes no writes */
  probe(): Promise<void>
  /** set at shutdown: `/readyz` says no, requests in flight are finished */
  drain(): void
  draining(): boolean
  close(): Promise<void>
}

/**
 * Opens database, keyring and caches.
 *
 * @param options.acceptRollback why a database that is older than its audit anchor is taken all the same
 * @param options.managers       what secrets are fetched from: others only in tests
 * @throws StartError with an exit code when the installation cannot be opened as it is
 */
export async function openGatehouse(
  loaded: LoadedConfig,
  log: Log,
  options: { acceptRollback?: string; managers?: Record<ManagerType, SecretManager> } = {},
): Promise<Gatehouse> {
  const { config } = loaded
  const knownKeys: KnownKeys = new Map()
  const masterKeys = () => readMasterKeys(config.master_key.source, loaded.environment.reveal())
  const admit: Admit = (keyring) => void (keyring.length > 0 && openKeyring(keyring, masterKeys(), knownKeys))
  const database = await openDatabase({ ...databaseOptions(loaded), admit })
  const { read } = database
  const keys = createKeys(read, { enforcesRotation: config.rotation.enforce })
  const lastUsed = createLastUsed(database.transaction)
  const registry = createRegistry(read, config.cache.compiled_templates)
  const maxStalenessMs = config.cache.max_staleness_seconds * 1000
  let draining = false
  let keyring: Keyring | undefined
  let digest: ((clear: string) => string) | undefined
  const metrics = createMetrics()
  const audit = openAudit(database, config, log, metrics)
  const clientIpOf = createClientIp(config.server.trusted_proxies)
  const mailer = createMailer({ smtp: config.smtp, password: loaded.smtpPassword, log, metrics })
  const gatehouse: Gatehouse = {
    config,
    log,
    dialect: database.dialect,
    read,
    audited: audit.audited,
    refusals: audit.refusals,
    uses: audit.uses,
    listAuditRows: audit.list,
    isAuditSinkMissing: audit.isSinkMissing,
    trailCheck: createTrailCheck(databaseOptions(loaded)),
    keys,
    refusedKeys: createRefusedKeys(read, { enforcesRotation: config.rotation.enforce }),
    lastUsed,
    async pruneAnswers(now) {
      if (await hasOldAnswers(read, now))
        await database.transaction({ action: 'idempotent_answers.prune' }, (tx) => pruneAnswers(tx, now))
    },
    registry,
    models: modelTable(config.render.models),
    secretReferences: createLiveReferences(read, () => gatehouse.keyring(), config.secret_managers.cache_entries),
    secretValues: createSecretValues({
      settings: config.secret_managers,
      outbound: createOutbound({ config: config.outbound, ownListeners: () => gatehouse.ownListeners() }),
      managers: options.managers ?? MANAGERS,
      onCall: metrics.managerCall,
    }),
    metrics,
    mailer,
    initialised: () => keyring !== undefined,
    async initialise() {
      await gatehouse.loadKeyring()
      if (keyring !== undefined) await Promise.all([keys.load(), registry.load()])
    },
    async loadKeyring() {
      const rows = await read.select().from(read.tables.keyring)
      if (rows.length === 0) return
      // A running server may be unable to read the source (decision 50).
      const isKnown = rows.every(({ id }) => knownKeys.has(id))
      keyring = openKeyring(rows, isKnown ? [] : gatehouse.masterKeys(), knownKeys)
      digest = createDigest(keyring.apiKeyPepper.reveal())
      await audit.useKeys(auditKeys(keyring))
    },
    masterKeys,
    keyring() {
      if (keyring === undefined) throw notInitialised()
      return keyring
    },
    digestKey(clear) {
      if (digest === undefined) throw notInitialised()
      return digest(clear)
    },
    assertServing() {
      if (digest === undefined) throw notInitialised()
      if (database.staleMs() > maxStalenessMs)
        throw new GatehouseError(
          'stale',
          'this node has not seen the changes of the others for too long; ask another node',
        )
    },
    ownListeners: () => [config.server],
    mayTakeLong: () => {},
    peerIp: () => null,
    cameOverSocket: () => false,
    clientIp: (request) => clientIpOf(gatehouse.peerIp(request), request.headers),
    publicUrl: () => config.server.public_url || `http://${config.server.host}:${config.server.port}`,
    probe: () => database.probe(),
    drain: () => {
      draining = true
    },
    draining: () => draining,
    async close() {
      await mailer.close()
      gatehouse.secretValues.close()
      gatehouse.trailCheck.stop()
      await audit.close()
      await lastUsed.flush().catch((error) => log.warn('last_used_lost', { cause: describeError(error) }))
      await database.close()
    },
  }
  database.onCommitted((changes) => applyChanges(gatehouse, changes))
  try {
    await gatehouse.initialise()
    await audit.assertNotRolledBack(options.acceptRollback)
    audit.startSink()
  } catch (error) {
    await database.close()
    throw error
  }
  return gatehouse
}

const notInitialised = (): GatehouseError =>
  new GatehouseError(
    'not_initialised',
    'this installation is empty: run `gatehouse bootstrap --org NAME --email ADDRESS` on its machine',
  )

/** Brings the caches up to a commit, of this node or another; the writer is answered only after it. */
async function applyChanges(gatehouse: Gatehouse, changes: Change[]): Promise<void> {
  const { keys, registry, initialise, loadKeyring } = gatehouse
  // What several changes of a group have touched is read once: it is read as it is after all of them.
  const distinct = new Map(changes.map((change) => [`${change.kind} ${change.id}`, change]))
  for (const { kind, id } of distinct.values()) {
    forgetSecrets(gatehouse, kind, id)
    if (kind === '*') await initialise()
    else if (kind === 'keyring') await loadKeyring()
    else if (kind === 'api_key') await keys.reload(id)
    else if (kind === 'organisation') await keys.load()
    else if (kind === 'workspace')
      await Promise.all([keys.reloadWhere({ workspaceId: id }), registry.reloadWorkspace(id)])
    else if (kind === 'user') await keys.reloadWhere({ userId: id })
    else if (kind === 'prompt') await registry.reloadPrompt(id)
    else if (kind === 'partial') await registry.reloadPartial(id)
    else if (kind === 'label') await registry.reloadLabel(id)
  }
}

/** Values belong to a reference alone; who may use it depends on workspaces, too. */
function forgetSecrets({ secretReferences, secretValues }: Gatehouse, kind: Change['kind'], id: string): void {
  if (kind === 'secret_reference') {
    secretReferences.references.drop(id)
    secretValues.drop(id)
  } else if (kind === 'workspace' || kind === 'keyring' || kind === '*') {
    secretReferences.clear()
    if (kind === '*') secretValues.clear()
  }
}

export function databaseOptions({ config, databasePassword }: LoadedConfig): DatabaseOptions {
  const { url, pool_size: poolSize, poll_ms: pollMs } = config.database
  if (url === '') return { dialect: 'sqlite', dataDir: config.data.dir, create: true }
  const password = databasePassword?.reveal()
  return { dialect: 'postgres', url, poolSize, pollMs, ...(password !== undefined && { password }) }
}
