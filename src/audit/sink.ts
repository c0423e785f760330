import { asc, eq, gt } from 'drizzle-orm'
import type { Reader } from '../db/database.ts'
import { GatehouseError } from '../errors.ts'
import { describeError, type Log } from '../log.ts'
import { chainText, ndjsonRecord } from './export.ts'
import { findHead } from './head.ts'
import { openSinkFile, type RowName, type SinkFile } from './sink-file.ts'
import { rowBefore } from './verify.ts'
import { listKeys } from './verify-keys.ts'

/** A second copy of the trail, in a file or a FIFO (AU-6). */
export interface AuditSink {
  /** @throws GatehouseError audit_unavailable when a required sink is known to take no rows */
  admit(): Promise<void>
  /**
   * Rows up to this number have been committed. Where the sink is required, resolves when they are durable there.
   *
   * @throws GatehouseError outcome_unknown when they are not: the change was stored, and its row follows later
   */
  stored(seq: number): Promise<void>
  /** whether it is required and takes no rows, or has yet to catch up */
  isMissing(): boolean
  /** copies once more, and lets go of the file */
  close(): Promise<void>
}

interface SinkOptions {
  path: string
  isRequired: boolean
  read: Reader
  log: Log
  /** told of every attempt that failed */
  failed(): void
}

/** An attempt that lasts longer has failed, but no other one begins before it has ended. */
const ATTEMPT_MS = 2000
/** Also how late the rows of other nodes come. */
const RETRY_MS = 2000
const BATCH = 256

/**
 * Copies the trail from the database, row by row in the order of their numbers, in the form of `audit export`. What the
 * sink has missed is made up for in the same way: it goes on from the last row that the file holds; a FIFO, from the
 * row that was the last when this process began.
 */
export function openSink({ path, isRequired, read, log, failed }: SinkOptions): AuditSink {
  let file: SinkFile | undefined
  /** the number of the last row in the sink */
  let last: number | undefined
  let needsChain = false
  let isBehind = true
  let isUp = false
  let isToldDown = false
  let isClosed = false
  let attempt: Promise<void> | undefined
  let isCatchingUp = false

  async function openFile(): Promise<SinkFile> {
    await file?.close()
    file = undefined
    last ??= (await findHead(read))?.seq ?? 0
    const opened = await openSinkFile(path)
    file = opened
    needsChain = opened.last === undefined
    if (opened.last !== undefined) await assertOurs(read, opened.last)
    if (!opened.isFifo) last = opened.last?.seq ?? 0
    return opened
  }

  async function copyBatch(): Promise<void> {
    const current = file !== undefined && (await file.isUntouched()) ? file : await openFile()
    const { auditEvents: t } = read.tables
    const columns = { seq: t.seq, hash: t.hash, text: t.text }
    const after = gt(t.seq, last ?? 0)
    const rows = await read.select(columns).from(t).where(after).orderBy(asc(t.seq)).limit(BATCH)
    isBehind = rows.length === BATCH
    const [first, end] = [rows[0], rows.at(-1)]
    if (first === undefined || end === undefined) return
    const chain = needsChain ? await chainRecordBefore(read, first.seq) : ''
    await current.append(chain + rows.map((row) => ndjsonRecord({ kind: 'row', ...row })).join(''))
    needsChain = false
    last = end.seq
  }

  function advance(): Promise<void> {
    attempt ??= withinDeadline(
      copyBatch()
        .then(tellUp, letGo)
        .finally(() => {
          attempt = undefined
        }),
    ).catch((error: unknown) => {
      tellDown(error)
      throw error
    })
    return attempt
  }

  /** What was written of a batch nobody knows: the file is opened again, and says it. */
  async function letGo(error: unknown): Promise<never> {
    const broken = file
    file = undefined
    await broken?.close().catch(() => {})
    throw error
  }

  function tellUp(): void {
    if (isBehind || isUp) return
    isUp = true
    if (isToldDown) log.info('audit_sink_up', { seq: last })
    isToldDown = false
  }

  function tellDown(error: unknown): void {
    isUp = false
    failed()
    if (!isToldDown) log.warn('audit_sink_down', { required: isRequired, cause: describeError(error) })
    isToldDown = true
  }

  async function reach(seq: number): Promise<void> {
    while ((last ?? -1) < seq) await advance()
  }

  async function catchUp(): Promise<void> {
    if (isCatchingUp) return
    isCatchingUp = true
    try {
      do await advance()
      while (isBehind && !isClosed)
    } catch {
      // It is told, and the next look tries again.
    }
    isCatchingUp = false
  }

  const started = advance().catch(() => {})
  void catchUp()
  const timer = setInterval(catchUp, RETRY_MS)
  timer.unref()

  return {
    async admit() {
      if (!isRequired) return
      await started
      if (!isUp) throw unavailable()
    },
    async stored(seq) {
      const copied = reach(seq)
      if (isRequired) await copied.catch(notConfirmed)
      else copied.catch(() => {})
    },
    isMissing: () => isRequired && !isUp,
    async close() {
      clearInterval(timer)
      isClosed = true
      // The one that is under way may have read before the last rows.
      await attempt?.catch(() => {})
      await advance().catch(() => {})
      const closed = file?.close().catch(() => {})
      // What hangs cannot be closed, and ends with the process.
      if (attempt === undefined) await closed
    },
  }
}

async function withinDeadline(work: Promise<void>): Promise<void> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`no answer within ${ATTEMPT_MS} ms`)), ATTEMPT_MS)
  await Promise.race([work, late.promise]).finally(() => clearTimeout(timer))
}

/** A file that is ahead of the database, or of another trail, would never get the rows that follow. */
async function assertOurs(read: Reader, { seq, hash }: RowName): Promise<void> {
  const { auditEvents: t } = read.tables
  const [row] = await read.select({ hash: t.hash }).from(t).where(eq(t.seq, seq))
  if (row?.hash === hash) return
  const head = await findHead(read)
  // Pruned, or given up by a restore, beyond which the numbers go on (decision 38).
  if (row === undefined && head !== undefined && seq < head.seq) return
  throw new Error(`its row ${seq} is not in this database; compare them, then move the file away`)
}

async function chainRecordBefore(read: Reader, seq: number): Promise<string> {
  const head = await findHead(read)
  if (head === undefined) throw new Error('the head of the trail is missing')
  const { hash } = await rowBefore({ read }, head, seq)
  return ndjsonRecord({ kind: 'chain', text: chainText(head.chainId, hash, await listKeys(read)) })
}

const unavailable = (): GatehouseError =>
  new GatehouseError(
    'audit_unavailable',
    'the second copy of the audit trail (audit.sink) takes no rows, and is required; nothing was changed, try again',
    { retryAfterSeconds: 5 },
  )

function notConfirmed(cause: unknown): never {
  throw new GatehouseError(
    'outcome_unknown',
    'the change was stored, but the second copy of the audit trail (audit.sink) has not taken its row yet; read it again',
    { cause },
  )
}
