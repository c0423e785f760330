import { callAdmin } from './admin-socket.ts'
import { type Call, defineCommand } from './command.ts'
import { loadFor } from './config.ts'

export const ownerTransfer = defineCommand({
  name: 'owner transfer',
  summary: 'Make a person the owner of the organisation, and the owner before an admin of it.',
  positionals: ['EMAIL'],
  flags: {},
  async run(call: Call) {
    const [email = ''] = call.positionals
    const made = await callAdmin(loadFor(call), call.io, 'owner.transfer', { email })
    call.io.out(call.flags.json ? `${JSON.stringify(made)}\n` : 'transferred\n')
    return undefined
  },
})
