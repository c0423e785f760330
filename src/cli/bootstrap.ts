import { callAdmin } from './admin-socket.ts'
import { defineCommand } from './command.ts'
import { loadFor } from './config.ts'
import { usageError } from './failure.ts'
import { deliverKey } from './key-file.ts'

export const bootstrap = defineCommand({
  name: 'bootstrap',
  summary: 'Make the organisation, its owner, the default workspace and the first admin key.',
  details: 'The key is shown once, on a terminal, or written with --output. Works beside a running server too.',
  flags: {
    org: { value: 'NAME', description: 'name of the organisation' },
    email: { value: 'ADDRESS', description: 'e-mail address of the owner' },
    output: { value: 'FILE', description: 'write ids and key to this new file (JSON, mode 0600)' },
  },
  async run(call) {
    const { org, email } = call.flags
    if (org === undefined) throw usageError('--org is missing', 'add --org NAME')
    if (email === undefined || !/^[^\s@]+@[^\s@]+$/.test(email))
      throw usageError('--email must be an e-mail address', 'add --email ADDRESS')
    const loaded = loadFor(call)
    await deliverKey(
      call.io,
      call.flags,
      () => callAdmin(loaded, call.io, 'bootstrap', { organisation: org, email }),
      (made) =>
        `${Object.entries(made)
          .map(([name, value]) => `${name.padEnd(16)}  ${value}\n`)
          .join('')}\nThe admin key is shown this once; keep it in a safe place.\n`,
    )
    return undefined
  },
})
