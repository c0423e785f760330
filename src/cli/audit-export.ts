import { type FileHandle, open, rename, unlink } from 'node:fs/promises'
import type { ExportFormat, UnsignedRange } from '../audit/export.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Snapshot } from '../db/snapshot.ts'
import { databaseOptions } from '../gatehouse.ts'
import { EXIT, StartError } from '../start-error.ts'
import { callAdmin } from './admin-socket.ts'
import { auditBroken } from './audit.ts'
import { defineCommand, type Flags, type Io, type Values } from './command.ts'
import { loadFor } from './config.ts'
import { dateOf } from './dates.ts'
import { usageError } from './failure.ts'

const FLAGS = {
  format: { value: 'FORMAT', description: 'ndjson or csv' },
  output: { value: 'FILE', description: 'the new file, mode 0600' },
  from: { value: 'DATE', description: 'no rows before this: 2027-01-31 or 2027-01-31T12:00:00Z' },
  to: { value: 'DATE', description: 'only rows before this' },
} as const satisfies Flags

export const auditExport = defineCommand({
  name: 'audit export',
  summary: 'Write the audit trail to a signed file that anybody can check with the public key.',
  details: 'How to check it stands in the README. The export is itself a row of the trail.',
  flags: FLAGS,
  async run(call) {
    const wanted = readFlags(call.flags)
    const loaded = loadFor(call)
    const range = await exportTo(loaded, call.io, wanted)
    const facts = { rows: range.count, last_seq: range.lastSeq, output: wanted.output }
    if (call.flags.json) call.io.out(`${JSON.stringify(facts)}\n`)
    else call.io.err(`written to ${wanted.output}: ${range.count} rows\n`)
    return undefined
  },
})

interface Wanted {
  format: ExportFormat
  output: string
  from: number
  to: number
}

function readFlags({ format, output, from, to }: Values<typeof FLAGS>): Wanted {
  if (format !== 'ndjson' && format !== 'csv') throw usageError('--format must be ndjson or csv', 'add --format ndjson')
  if (output === undefined) throw usageError('--output is missing', 'add --output FILE')
  return {
    format,
    output,
    from: from === undefined ? 0 : dateOf('--from', from),
    to: to === undefined ? Number.MAX_SAFE_INTEGER : dateOf('--to', to),
  }
}

/** Under another name first: a file of that name is whole and signed. */
async function exportTo(loaded: LoadedConfig, io: Io, wanted: Wanted): Promise<UnsignedRange> {
  const { writeRows, signatureRecord } = await import('../audit/export.ts')
  const { withSnapshot } = await import('../db/snapshot.ts')
  const unfinished = `${wanted.output}.unfinished`
  const reserved = await create(wanted.output)
  await reserved.close()
  const file = await create(unfinished)
  try {
    const written = await withSnapshot(databaseOptions(loaded), async (snapshot) => {
      await assertKeys(snapshot)
      return writeRows(snapshot, wanted.format, wanted, (text) => file.appendFile(text))
    })
    if (written === undefined)
      throw new StartError('NOT_INITIALISED', EXIT.data, 'there is no audit trail yet', 'run gatehouse bootstrap')
    const signed = await callAdmin(loaded, io, 'audit.sign-export', written.range)
    if (!written.keyIds.includes(signed.key_id))
      throw new StartError('KEY_ROTATED', EXIT.unavailable, 'the signing key was rotated meanwhile', 'export again')
    await file.appendFile(signatureRecord(wanted.format, written.range, signed))
    await file.sync()
    await rename(unfinished, wanted.output)
    return written.range
  } catch (error) {
    await Promise.all([unlink(unfinished), unlink(wanted.output)])
    throw error
  } finally {
    await file.close()
  }
}

/** Nobody could check the file with the first public key, if the keys do not lead from it to the last one. */
async function assertKeys({ read }: Snapshot): Promise<void> {
  const { findHead } = await import('../audit/head.ts')
  const { storedKeyProblem } = await import('../audit/verify-keys.ts')
  const head = await findHead(read)
  const problem = head && (await storedKeyProblem(read, head))
  if (problem !== undefined) throw auditBroken(problem)
}

async function create(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx', 0o600)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new StartError(
      'CANNOT_CREATE',
      EXIT.cannotCreate,
      `the file of --output cannot be created (${code})`,
      'name a new file in a folder that this user may write to',
    )
  }
}
