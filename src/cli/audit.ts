import type { Fault } from '../audit/scheduled-verify.ts'
import { databaseOptions } from '../gatehouse.ts'
import { EXIT, StartError } from '../start-error.ts'
import { callAdmin } from './admin-socket.ts'
import { type Call, defineCommand } from './command.ts'
import { loadFor } from './config.ts'
import { dateOf } from './dates.ts'
import { usageError } from './failure.ts'
import { masterKeysIn, revealed } from './master-key.ts'

export const auditVerify = defineCommand({
  name: 'audit verify',
  summary: 'Check every row of the audit trail, its order and its signature; name the first that is wrong.',
  details: 'Only reads, beside a running server or without one. Exit code 65 when something is wrong.',
  flags: {
    'public-key': {
      value: 'BASE64',
      description: 'the first public key of the trail, as noted elsewhere; without it the one in the trail is believed',
    },
  },
  async run({ flags, io }) {
    const loaded = loadFor({ flags, io })
    const { verifyDatabase } = await import('../audit/verify-database.ts')
    const verified = await verifyDatabase(databaseOptions(loaded), { publicKey: flags['public-key'] })
    const { rows, head, publicKey, fault } = verified
    if (fault !== undefined) throw trailBroken(fault)
    const facts = { rows, last_seq: head?.seq ?? 0, last_hash: head?.hash ?? null, public_key: publicKey ?? null }
    io.out(
      flags.json
        ? `${JSON.stringify(facts)}\n`
        : `${rows} rows up to number ${facts.last_seq}, all in order\nlast hash   ${facts.last_hash}\npublic key  ${facts.public_key}\n`,
    )
    return undefined
  },
})

export const trailBroken = ({ seq, problem }: Fault): StartError =>
  auditBroken(seq === 0 ? problem : `row ${seq}: ${problem}`)

export const auditBroken = (problem: string): StartError =>
  new StartError(
    'AUDIT_BROKEN',
    EXIT.data,
    problem,
    'keep a copy of the database as it is, and compare it with a backup or an export',
  )

export const auditRotateKey = defineCommand({
  name: 'audit rotate-key',
  summary: 'Sign the audit trail with a new key from now on; the old one vouches for it.',
  flags: {},
  async run(call: Call) {
    const loaded = loadFor(call)
    const made = await callAdmin(loaded, call.io, 'audit.rotate-key', { masterKeys: revealed(masterKeysIn(loaded)) })
    call.io.out(
      call.flags.json ? `${JSON.stringify(made)}\n` : `id          ${made.id}\npublic key  ${made.public_key}\n`,
    )
    return undefined
  },
})

export const auditPrune = defineCommand({
  name: 'audit prune',
  summary: 'Remove the oldest rows of the audit trail; what is left still verifies.',
  details: 'Export them first. Rows younger than audit.retention_min_days stay.',
  flags: { before: { value: 'DATE', description: 'remove rows older than this: 2027-01-31 or 2027-01-31T12:00:00Z' } },
  async run(call) {
    if (call.flags.before === undefined) throw usageError('--before is missing', 'add --before DATE')
    const before = dateOf('--before', call.flags.before)
    const made = await callAdmin(loadFor(call), call.io, 'audit.prune', { before })
    call.io.out(call.flags.json ? `${JSON.stringify(made)}\n` : `removed ${made.removed} rows\n`)
    return undefined
  },
})
