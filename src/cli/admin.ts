import { type Static, type TObject, Type } from '@sinclair/typebox'
import { and, asc, eq, isNull, or } from 'drizzle-orm'
import { Name } from '../../schema/api/common.ts'
import { CreateSecretReference } from '../../schema/api/secret-references.ts'
import { outbound, secretManagers } from '../../schema/outgoing.ts'
import type { Actor } from '../auth/caller.ts'
import type { MasterKeys } from '../crypto/master-key.ts'
import { invalid, notFound } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { complaints } from '../http/complaints.ts'
import { Redacted } from '../redacted.ts'
import { EXIT, StartError } from '../start-error.ts'

/** Where an administrative command runs: the opened installation, and the user at the command line. */
export interface AdminContext {
  gatehouse: Gatehouse
  uid: number
}

interface AdminCommand<I extends TObject, O> {
  input: I
  run(context: AdminContext, input: Static<I>): Promise<O>
}

const closed = { additionalProperties: false }

/** The lines of the master key source, read by the command: the server may be unable to (decision 50). */
const WithMasterKeys = Type.Object(
  {
    masterKeys: Type.Array(
      Type.Object({ id: Type.String(), key: Type.String({ pattern: '^[A-Za-z0-9+/]{43}=$' }) }, closed),
    ),
  },
  closed,
)

const defineAdmin = <I extends TObject, O>(command: AdminCommand<I, O>) => command

/**
 * The commands that need the opened installation. The running server takes them over the admin socket; without a
 * server the command line opens the installation and runs them itself (decision 50). What they call is loaded with
 * them, so that `version` and `config check` do not load the server.
 */
export const ADMIN_COMMANDS = {
  bootstrap: defineAdmin({
    input: Type.Object({ organisation: Name, email: Type.String({ minLength: 1 }) }, closed),
    async run({ gatehouse, uid }, input) {
      const { bootstrap } = await import('../organisation/bootstrap.ts')
      return bootstrap(gatehouse, { ...input, uid })
    },
  }),
  'keys.create': defineAdmin({
    input: Type.Object(
      {
        type: Type.Union([
          Type.Literal('organisation-service'),
          Type.Literal('workspace-service'),
          Type.Literal('workspace-user'),
          Type.Literal('system'),
        ]),
        name: Name,
        scopes: Type.Array(Type.String()),
        workspace: Type.Optional(Type.String({ description: 'id or slug' })),
        userId: Type.Optional(Type.String()),
        accountable: Type.Optional(Type.String({ minLength: 1, description: 'e-mail address' })),
        expiresAt: Type.Optional(Type.Integer({ description: 'UTC milliseconds' })),
      },
      closed,
    ),
    run: createKey,
  }),
  'keys.end-transition': defineAdmin({
    input: Type.Object({ id: Type.String({ minLength: 1 }) }, closed),
    async run(context, { id }) {
      const actor = await actorOf(context, 'keys end-transition')
      const { endTransition } = await import('../api-keys/rotate.ts')
      await endTransition(context.gatehouse, actor, id)
      return { id }
    },
  }),
  'owner.transfer': defineAdmin({
    input: Type.Object({ email: Type.String({ minLength: 1 }) }, closed),
    async run(context, { email }) {
      const actor = await actorOf(context, 'owner transfer')
      const { transferOwnership } = await import('../organisation/ownership.ts')
      return transferOwnership(context.gatehouse, actor, email)
    },
  }),
  'audit.sign-export': defineAdmin({
    input: Type.Object(
      {
        chainId: Type.String(),
        previousHash: Type.String(),
        lastSeq: Type.Integer(),
        lastHash: Type.String(),
        count: Type.Integer(),
      },
      closed,
    ),
    async run(context, range) {
      const actor = await actorOf(context, 'audit export')
      const { signExport } = await import('../audit/export.ts')
      return signExport(context.gatehouse, actor, range)
    },
  }),
  'audit.prune': defineAdmin({
    input: Type.Object({ before: Type.Integer({ description: 'UTC milliseconds' }) }, closed),
    async run(context, { before }) {
      const actor = await actorOf(context, 'audit prune')
      const { pruneTrail } = await import('../audit/prune.ts')
      return { removed: await pruneTrail(context.gatehouse, actor, before) }
    },
  }),
  'audit.rotate-key': defineAdmin({
    input: WithMasterKeys,
    async run(context, input) {
      const actor = await actorOf(context, 'audit rotate-key')
      const { rotateSigningKey } = await import('../audit/rotate-key.ts')
      return rotateSigningKey(context.gatehouse, actor, masterKeysOf(input))
    },
  }),
  'secret-references.test': defineAdmin({
    input: Type.Object(
      { reference: Type.String({ minLength: 1, description: 'id or slug' }), fresh: Type.Boolean() },
      closed,
    ),
    async run(context, { reference, fresh }) {
      const actor = await actorOf(context, 'secret-references test')
      const { testSecretReference } = await import('../secret-references/test.ts')
      return testSecretReference(context.gatehouse, actor, reference, fresh)
    },
  }),
  'secret-references.test-new': defineAdmin({
    input: CreateSecretReference,
    async run(context, body) {
      const actor = await actorOf(context, 'secret-references test')
      const { testNewReference } = await import('../secret-references/test.ts')
      return testNewReference(context.gatehouse, actor, body)
    },
  }),
  'secret-references.check': defineAdmin({
    input: Type.Object(
      {
        outbound,
        machine_identity: secretManagers.properties.machine_identity,
        listener: Type.Object({ host: Type.String(), port: Type.Integer() }, closed),
      },
      closed,
    ),
    async run({ gatehouse }, { outbound: config, machine_identity: grants, listener }) {
      const { createOutbound } = await import('../outbound/outbound.ts')
      const { checkSecretReferences } = await import('../secret-references/check.ts')
      const settings = createOutbound({ config, ownListeners: () => [listener] })
      return checkSecretReferences(gatehouse, { grants, outbound: settings })
    },
  }),
  'keys.list': defineAdmin({ input: Type.Object({}, closed), run: listKeys }),
  'keys.revoke': defineAdmin({
    input: Type.Object({ id: Type.String({ minLength: 1 }) }, closed),
    async run(context, { id }) {
      const actor = await actorOf(context, 'keys revoke')
      const { deleteApiKey } = await import('../api-keys/service.ts')
      await deleteApiKey(context.gatehouse, actor, id)
      return { id }
    },
  }),
  'master-key.in-use': defineAdmin({
    input: Type.Object({}, closed),
    async run({ gatehouse }) {
      const { masterKeysInUse } = await import('../keyring/master-key.ts')
      return masterKeysInUse(gatehouse.read)
    },
  }),
  'master-key.rotate': defineAdmin({
    input: WithMasterKeys,
    async run(context, input) {
      const actor = await actorOf(context, 'rotate-master-key')
      const { rotateMasterKey } = await import('../keyring/master-key.ts')
      return { id: await rotateMasterKey(context.gatehouse, actor, masterKeysOf(input)) }
    },
  }),
  'data-key.begin': defineAdmin({
    input: WithMasterKeys,
    async run(context, input) {
      const actor = await actorOf(context, 'rotate-data-key')
      const { beginDataKeyRotation } = await import('../keyring/data-key.ts')
      return beginDataKeyRotation(context.gatehouse, actor, masterKeysOf(input))
    },
  }),
  'data-key.reseal': defineAdmin({
    input: Type.Object(
      { after: Type.Optional(Type.Object({ column: Type.Integer(), id: Type.String() }, closed)) },
      closed,
    ),
    async run(context, { after }) {
      const actor = await actorOf(context, 'rotate-data-key')
      const { resealBatch } = await import('../keyring/data-key.ts')
      return resealBatch(context.gatehouse, actor, after ?? null)
    },
  }),
  'data-key.finish': defineAdmin({
    input: Type.Object({}, closed),
    async run(context) {
      const actor = await actorOf(context, 'rotate-data-key')
      const { finishDataKeyRotation } = await import('../keyring/data-key.ts')
      await finishDataKeyRotation(context.gatehouse, actor)
      return {}
    },
  }),
}

export type AdminName = keyof typeof ADMIN_COMMANDS
export type AdminInput<N extends AdminName> = Parameters<(typeof ADMIN_COMMANDS)[N]['run']>[1]
export type AdminOutput<N extends AdminName> = Awaited<ReturnType<(typeof ADMIN_COMMANDS)[N]['run']>>

export const isAdminName = (name: string): name is AdminName => Object.hasOwn(ADMIN_COMMANDS, name)

/**
 * Runs one command after checking its input, which may come from a program of another version.
 *
 * @throws GatehouseError, StartError as the command does; GatehouseError `invalid` for an input out of contract
 */
export async function runAdmin(context: AdminContext, name: AdminName, input: unknown): Promise<unknown> {
  const command = ADMIN_COMMANDS[name] as unknown as AdminCommand<TObject, unknown>
  const found = complaints(command.input, input)
  if (found.length > 0) throw invalid(found)
  return command.run(context, input as Static<TObject>)
}

const masterKeysOf = ({ masterKeys }: Static<typeof WithMasterKeys>): MasterKeys =>
  masterKeys.map(({ id, key }) => ({ id, bytes: new Redacted(Buffer.from(key, 'base64')) }))

interface NewKey {
  type: 'organisation-service' | 'workspace-service' | 'workspace-user' | 'system'
  name: string
  scopes: string[]
  workspace?: string
  userId?: string
  accountable?: string
  expiresAt?: number
}

async function createKey(context: AdminContext, input: NewKey) {
  const { type, name, scopes, workspace, userId, accountable, expiresAt } = input
  const actor = await actorOf(context, 'keys create')
  const { gatehouse } = context
  const { createApiKey } = await import('../api-keys/service.ts')
  const workspaceId = workspace === undefined ? null : await workspaceIdOf(gatehouse, workspace)
  const expires_at = expiresAt === undefined ? null : new Date(expiresAt).toISOString()
  const accountableUserId =
    accountable === undefined ? undefined : await personIdOf(gatehouse, actor.organisationId, accountable)
  return createApiKey(gatehouse, actor, { type, name, scopes, workspaceId, userId, accountableUserId, expires_at })
}

async function actorOf(
  { gatehouse: { read }, uid }: AdminContext,
  command: string,
): Promise<Extract<Actor, { kind: 'cli' }>> {
  const t = read.tables.organisations
  const [organisation] = await read.select({ id: t.id }).from(t).orderBy(asc(t.createdAt)).limit(1)
  if (organisation === undefined) {
    const fix = 'run gatehouse bootstrap --org NAME --email ADDRESS'
    throw new StartError('NOT_INITIALISED', EXIT.data, 'this installation is empty', fix)
  }
  return { kind: 'cli', uid, organisationId: organisation.id, command }
}

async function workspaceIdOf({ read }: Gatehouse, idOrSlug: string): Promise<string> {
  const t = read.tables.workspaces
  const named = and(eq(t.status, 'active'), or(eq(t.id, idOrSlug), eq(t.slug, idOrSlug)))
  const [row] = await read.select({ id: t.id }).from(t).where(named).limit(1)
  if (row === undefined) throw notFound('workspace')
  return row.id
}

async function personIdOf({ read }: Gatehouse, organisationId: string, email: string): Promise<string> {
  const { findUserByEmail } = await import('../users/store.ts')
  const person = await findUserByEmail(read, organisationId, email)
  if (person === undefined) throw notFound('person')
  return person.id
}

/** All keys that are not revoked: unlike the API it lists system keys, which exist on the command line only. */
async function listKeys({ gatehouse: { read } }: AdminContext) {
  const t = read.tables.apiKeys
  const { id, name, type, masked, workspaceId, userId, createdAt, expiresAt } = t
  const columns = { id, name, type, key: masked, workspaceId, userId, createdAt, expiresAt }
  return read.select(columns).from(t).where(isNull(t.deletedAt)).orderBy(asc(createdAt), asc(id))
}
