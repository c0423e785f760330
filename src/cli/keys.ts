import { GRANTABLE } from '../../schema/api/permissions.ts'
import type { KeyType } from '../auth/caller.ts'
import { callAdmin } from './admin-socket.ts'
import { type Call, defineCommand, type Flags, type Values } from './command.ts'
import { loadFor } from './config.ts'
import { dateOf } from './dates.ts'
import { usageError } from './failure.ts'
import { deliverKey } from './key-file.ts'

const CREATE_FLAGS = {
  admin: { description: 'a key of the whole organisation' },
  system: {
    description: "the gateway's own key (spec 2.5), taken from the peers in system.allow only; its scopes are fixed",
  },
  workspace: { value: 'ID', description: 'a key of this workspace (id or slug), with --service or --user' },
  service: { description: 'the workspace key belongs to a program' },
  user: { value: 'ID', description: 'the workspace key belongs to this person' },
  for: { value: 'EMAIL', description: "the person who answers for a key that is nobody's own (default: the owner)" },
  name: { value: 'NAME', description: 'what the key is for' },
  scopes: { value: 'A,B', description: 'permissions such as prompts.render, or all that the type may hold: all' },
  expires: { value: 'DATE', description: 'end of validity: 2027-01-31 or 2027-01-31T12:00:00Z (default: none)' },
  output: { value: 'FILE', description: 'write id and key to this new file (JSON, mode 0600)' },
} as const satisfies Flags

export const keysCreate = defineCommand({
  name: 'keys create',
  summary: 'Make an API key; it is shown once, on a terminal, or written with --output.',
  flags: CREATE_FLAGS,
  async run(call) {
    const input = createInput(call.flags, Date.now())
    const loaded = loadFor(call)
    await deliverKey(
      call.io,
      call.flags,
      async () => {
        const { id, key } = await callAdmin(loaded, call.io, 'keys.create', input)
        return { id, key }
      },
      ({ id, key }) => `id   ${id}\nkey  ${key}\n\nThe key is shown this once; keep it in a safe place.\n`,
    )
    return undefined
  },
})

export const keysList = defineCommand({
  name: 'keys list',
  summary: 'List the keys that are not revoked, system keys too.',
  flags: {},
  async run(call) {
    const keys = await callAdmin(loadFor(call), call.io, 'keys.list', {})
    const rows = keys.map((key) => ({
      ...key,
      createdAt: toDate(key.createdAt),
      expiresAt: key.expiresAt === null ? null : toDate(key.expiresAt),
    }))
    if (call.flags.json) call.io.out(`${JSON.stringify(rows)}\n`)
    else
      for (const { id, type, key, expiresAt, name } of rows)
        call.io.out(`${id}  ${type.padEnd(20)}  ${key}  ${expiresAt ?? 'no expiry'}  ${printable(name)}\n`)
    return undefined
  },
})

export const keysRevoke = defineCommand({
  name: 'keys revoke',
  summary: 'Revoke a key; its next request is refused.',
  positionals: ['ID'],
  flags: {},
  async run(call: Call) {
    const [id = ''] = call.positionals
    const revoked = await callAdmin(loadFor(call), call.io, 'keys.revoke', { id })
    call.io.out(call.flags.json ? `${JSON.stringify(revoked)}\n` : 'revoked\n')
    return undefined
  },
})

export const keysEndTransition = defineCommand({
  name: 'keys end-transition',
  summary: 'End the old secret of a rotated key now; the new one goes on.',
  positionals: ['ID'],
  flags: {},
  async run(call: Call) {
    const [id = ''] = call.positionals
    const ended = await callAdmin(loadFor(call), call.io, 'keys.end-transition', { id })
    call.io.out(call.flags.json ? `${JSON.stringify(ended)}\n` : 'ended\n')
    return undefined
  },
})

/** @param now UTC milliseconds */
function createInput(flags: Values<typeof CREATE_FLAGS>, now: number) {
  const type = keyTypeOf(flags)
  if (flags.for !== undefined && type === 'workspace-user')
    throw usageError("--for is for keys that are not a person's own", 'leave --for away')
  if (flags.name === undefined) throw usageError('--name is missing', 'add --name NAME')
  return {
    type,
    name: flags.name,
    scopes: scopesOf(type, flags.scopes),
    ...(flags.workspace !== undefined && { workspace: flags.workspace }),
    ...(flags.user !== undefined && { userId: flags.user }),
    ...(flags.for !== undefined && { accountable: flags.for }),
    ...(flags.expires !== undefined && { expiresAt: expiryOf(flags.expires, now) }),
  }
}

function keyTypeOf({ admin, system, workspace, service, user }: Values<typeof CREATE_FLAGS>): KeyType {
  const isWorkspace = workspace !== undefined && service !== (user !== undefined)
  const isPlain = workspace === undefined && !service && user === undefined
  if (admin && !system && isPlain) return 'organisation-service'
  if (system && !admin && isPlain) return 'system'
  if (!admin && !system && isWorkspace) return service ? 'workspace-service' : 'workspace-user'
  throw usageError(
    'the kind of key is unclear',
    'give one of: --admin; --system; --workspace ID --service; --workspace ID --user ID',
  )
}

function scopesOf(type: KeyType, written: string | undefined): string[] {
  if (type === 'system') {
    if (written !== undefined) throw usageError('the scopes of a system key are fixed', 'leave --scopes away')
    return []
  }
  if (written === undefined)
    throw usageError('--scopes is missing', 'add --scopes prompts.render,prompts.read, or --scopes all')
  if (written === 'all') return [...GRANTABLE[type]]
  return written.split(',').map((scope) => scope.trim())
}

function expiryOf(written: string, now: number): number {
  const at = dateOf('--expires', written)
  if (at <= now)
    throw usageError('--expires must be a date in the future', 'write it as 2027-01-31 or 2027-01-31T12:00:00Z')
  return at
}

const toDate = (time: number) => new Date(time).toISOString()

/** A name may hold anything that its author typed; a terminal shall not act on it. */
const printable = (text: string) => text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, '?')
