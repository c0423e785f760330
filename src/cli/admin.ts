import { type Static, type TObject, Type } from '@sinclair/typebox'
import { and, asc, eq, isNull, or } from 'drizzle-orm'
import { PERMISSIONS, type Permission } from '../../schema/api/permissions.ts'
import type { Actor } from '../auth/caller.ts'
import { invalid, notFound } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { complaints } from '../http/complaints.ts'
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

const defineAdmin = <I extends TObject, O>(command: AdminCommand<I, O>) => command
const closed = { additionalProperties: false }
const KEY_TYPES = ['organisation-service', 'workspace-service', 'workspace-user', 'system'] as const

/**
 * The commands that need the opened installation. The running server takes them over the admin socket; without a
 * server the command line opens the installation and runs them itself (decision 50).
 */
export const ADMIN_COMMANDS = {
  bootstrap: defineAdmin({
    input: Type.Object({ organisation: Type.String({ minLength: 1 }), email: Type.String({ minLength: 1 }) }, closed),
    async run({ gatehouse }, input) {
      if (gatehouse.initialised()) {
        throw new StartError(
          'ALREADY_INITIALISED',
          EXIT.data,
          'this installation has its organisation already',
          'gatehouse keys create --admin makes a further admin key',
        )
      }
      const { bootstrap } = await import('../organisation/bootstrap.ts')
      return bootstrap(gatehouse, input)
    },
  }),
  'keys.create': defineAdmin({
    input: Type.Object(
      {
        type: Type.Union(KEY_TYPES.map((type) => Type.Literal(type))),
        name: Type.String({ minLength: 1 }),
        scopes: Type.Array(Type.String()),
        /** id or slug */
        workspace: Type.Optional(Type.String()),
        userId: Type.Optional(Type.String()),
        /** UTC milliseconds */
        expiresAt: Type.Optional(Type.Integer()),
      },
      closed,
    ),
    async run(context, { workspace, type, scopes, ...input }) {
      const actor = await actorOf(context, 'keys create')
      const { createApiKey } = await import('../api-keys/service.ts')
      const workspaceId = workspace === undefined ? undefined : await workspaceIdOf(context.gatehouse, workspace)
      return createApiKey(context.gatehouse, actor, {
        ...input,
        type,
        scopes: type === 'system' ? SYSTEM_SCOPES : (scopes as Permission[]),
        ...(workspaceId !== undefined && { workspaceId }),
      })
    },
  }),
  'keys.list': defineAdmin({ input: Type.Object({}, closed), run: ({ gatehouse }) => listKeys(gatehouse) }),
  'keys.revoke': defineAdmin({
    input: Type.Object({ id: Type.String({ minLength: 1 }) }, closed),
    async run(context, { id }) {
      const actor = await actorOf(context, 'keys revoke')
      const { deleteApiKey } = await import('../api-keys/service.ts')
      await deleteApiKey(context.gatehouse, actor, id)
      return { id }
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

/** What a system key may do, no more and no less (decision 16). */
const SYSTEM_SCOPES = PERMISSIONS.filter((permission) =>
  /^(prompts\.render|logs\.write|(secret_references|providers|configs|organisation_integrations|workspace_integrations)\.(read|list))$/.test(
    permission,
  ),
)

async function actorOf({ gatehouse, uid }: AdminContext, command: string): Promise<Actor> {
  const { read } = gatehouse
  const [organisation] = await read
    .select({ id: read.tables.organisations.id })
    .from(read.tables.organisations)
    .orderBy(asc(read.tables.organisations.createdAt))
    .limit(1)
  if (organisation === undefined) {
    throw new StartError(
      'NOT_INITIALISED',
      EXIT.data,
      'this installation is empty',
      'run gatehouse bootstrap --org NAME --email ADDRESS',
    )
  }
  return { kind: 'cli', uid, organisationId: organisation.id, command }
}

async function workspaceIdOf({ read }: Gatehouse, idOrSlug: string): Promise<string> {
  const t = read.tables.workspaces
  const [row] = await read
    .select({ id: t.id })
    .from(t)
    .where(or(eq(t.id, idOrSlug), eq(t.slug, idOrSlug)))
    .limit(1)
  if (row === undefined) throw notFound('workspace')
  return row.id
}

/** All keys that are not revoked: unlike the API it lists system keys, which exist on the command line only. */
async function listKeys({ read }: Gatehouse) {
  const t = read.tables.apiKeys
  const { id, name, type, masked, workspaceId, userId, createdAt, expiresAt } = t
  return read
    .select({ id, name, type, key: masked, workspaceId, userId, createdAt, expiresAt })
    .from(t)
    .where(and(isNull(t.deletedAt)))
    .orderBy(asc(t.createdAt), asc(t.id))
}
