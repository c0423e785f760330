import type { CreateSecretReference } from '../../schema/api/secret-references.ts'
import type { SecretReferenceTest } from '../../schema/api/secret-values.ts'
import { auditKeys } from '../audit/keys.ts'
import type { Actor, KeyActor } from '../auth/caller.ts'
import { assertOwnOrganisation } from '../auth/tenancy.ts'
import { notFound } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import type { Reference, TestReport } from '../secret-managers/values.ts'
import { readNewReference } from './fields.ts'
import { getNamedWorkspaces } from './service.ts'

type Deps = Pick<Gatehouse, 'secretReferences' | 'secretValues' | 'audited' | 'read' | 'keyring' | 'config'>

/** Who may test: an admin key, or a person at the command line. */
export type Tester = KeyActor | Extract<Actor, { kind: 'cli' }>

/**
 * Goes to the manager of a stored reference, step by step, and says how far it got.
 *
 * @param fresh log in anew
 * @throws GatehouseError `not_found`, `rate_limited` after 10 in a minute; a manager that fails is no error
 */
export async function testSecretReference(
  gatehouse: Deps,
  actor: Tester,
  idOrSlug: string,
  fresh: boolean,
): Promise<SecretReferenceTest> {
  const live = await gatehouse.secretReferences.references.load(organisationOf(actor), idOrSlug)
  if (live === undefined) throw notFound('secret reference')
  const { id, name, reference, secretKey } = live
  const report = await gatehouse.secretValues.test(reference, { fresh, secretKey })
  return recorded(gatehouse, actor, report, { resourceId: id, resourceName: name }, id)
}

/**
 * The same for a reference that is not stored, nor will be.
 *
 * @throws GatehouseError `invalid` with all complaints, `forbidden` for another organisation; `rate_limited` after 10 in
 *                        a minute by one tester
 */
export async function testNewReference(
  gatehouse: Deps,
  actor: Tester,
  body: CreateSecretReference,
): Promise<SecretReferenceTest> {
  const organisationId = organisationOf(actor)
  if (actor.kind === 'key') assertOwnOrganisation(actor.caller, body.organisation_id)
  const authConfig = readNewReference(body, gatehouse.config.outbound.allow)
  const { allowed_workspaces: allowed, secret_key: secretKey = null } = body
  const isOpen = body.allow_all_workspaces ?? !allowed
  const reference: Reference = {
    id: actor.kind === 'key' ? actor.caller.keyId : organisationId,
    organisationId,
    revision: 0,
    managerType: body.manager_type,
    authConfig: () => authConfig,
    secretPath: body.secret_path,
    cacheSeconds: null,
    workspaces: isOpen ? 'all' : await getNamedWorkspaces(gatehouse.read, organisationId, allowed ?? []),
  }
  const report = await gatehouse.secretValues.test(reference, { secretKey })
  // Two tests of one body have one fingerprint; it says nothing of the same value elsewhere (decision 7).
  const place = JSON.stringify([organisationId, authConfig, body.secret_path, secretKey])
  return recorded(gatehouse, actor, report, { resourceName: body.name }, Bun.SHA256.hash(place, 'hex'))
}

const organisationOf = (actor: Tester): string =>
  actor.kind === 'key' ? actor.caller.organisationId : actor.organisationId

/** Stores how a test went, and answers it. */
function recorded(
  { audited, keyring }: Pick<Deps, 'audited' | 'keyring'>,
  actor: Tester,
  { ok, failedStep, steps, value, version, usedCachedLogin }: TestReport,
  target: { resourceId?: string; resourceName: string },
  place: string,
): Promise<SecretReferenceTest> {
  const details = {
    ok,
    failed_step: failedStep,
    code: steps.find(({ step }) => step === failedStep)?.code ?? null,
    used_cached_login: usedCachedLogin,
  }
  const fingerprint =
    value === null ? null : auditKeys(keyring()).fingerprint('secret_references', place, 'value', value.reveal())
  const event = { action: 'secret_references.test', workspaceId: null, ...target, details }
  return audited(actor, event, async () => ({
    object: 'secret-reference-test',
    ok,
    failed_step: failedStep,
    steps,
    fingerprint,
    version,
    used_cached_login: usedCachedLogin,
  }))
}
