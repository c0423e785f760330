import { open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { and, eq, gt } from 'drizzle-orm'
import type { Reader } from '../db/database.ts'
import { describeError, type Log } from '../log.ts'
import { giveToOwnerOf } from '../owner.ts'
import { EXIT, StartError } from '../start-error.ts'
import type { Head } from './chain.ts'
import { findHead } from './head.ts'
import type { AuditRow } from './row.ts'

/** How far the trail had come when the file was written. It lies beside the database, and does not go back with it. */
export interface Anchor {
  chain_id: string
  seq: number
  hash: string
}

const SAVE_EVERY_MS = 60_000
const SAVE_EVERY_ROWS = 1000

const pathIn = (dataDir: string) => join(dataDir, 'AUDIT_ANCHOR')

/** @throws StartError 65 ANCHOR_UNREADABLE when the file is there and says nothing */
export async function readAnchor(dataDir: string): Promise<Anchor | undefined> {
  let text: string
  try {
    text = await readFile(pathIn(dataDir), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw unreadable()
  }
  try {
    const { chain_id, seq, hash } = JSON.parse(text) as Anchor
    if (typeof chain_id === 'string' && Number.isSafeInteger(seq) && typeof hash === 'string')
      return { chain_id, seq, hash }
  } catch {
    // as below
  }
  throw unreadable()
}

const unreadable = (): StartError =>
  new StartError(
    'ANCHOR_UNREADABLE',
    EXIT.data,
    'AUDIT_ANCHOR in the data folder cannot be read',
    'put it back from a backup, or remove it once gatehouse audit verify finds nothing else',
  )

/** Under another name first, and on the disk before it takes the old one's place. */
export async function writeAnchor(dataDir: string, { chainId, seq, hash }: Head): Promise<void> {
  const path = pathIn(dataDir)
  const file = await open(`${path}.new`, 'w', 0o600)
  try {
    await giveToOwnerOf(dataDir, file)
    await file.writeFile(`${JSON.stringify({ chain_id: chainId, seq, hash } satisfies Anchor)}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(`${path}.new`, path)
  const folder = await open(dataDir, 'r')
  await folder.sync().finally(() => folder.close())
}

/**
 * What is missing from the database that the anchor saw (AU-5): a cut log, or an old copy that was put back. The anchor
 * may lag behind the head, and has to be read before the database is, so that it is never ahead of it.
 */
export async function anchorProblem(read: Reader, { chain_id, seq, hash }: Anchor): Promise<string | undefined> {
  const head = await findHead(read)
  const last = head?.seq ?? 0
  if (head !== undefined && head.chainId !== chain_id) return 'AUDIT_ANCHOR is of another trail'
  if (last < seq) return `rows ${last + 1} to ${seq} are missing, which AUDIT_ANCHOR has seen`
  if (head !== undefined && seq <= head.prunedSeq) return undefined
  const { auditEvents: t } = read.tables
  const [row] = await read.select({ hash: t.hash }).from(t).where(eq(t.seq, seq))
  if (row?.hash === hash || (await isAbandoned(read, { chain_id, seq, hash }))) return undefined
  return `row ${seq} is not the one that AUDIT_ANCHOR has seen`
}

/** Whether a later row of a restore has given up what the anchor saw: it is stored before the anchor follows it. */
async function isAbandoned(read: Reader, anchor: Anchor): Promise<boolean> {
  const { auditEvents: t } = read.tables
  const restores = await read
    .select({ text: t.text })
    .from(t)
    .where(and(gt(t.seq, anchor.seq), eq(t.resourceType, 'system'), eq(t.action, 'restore')))
  return restores.some(({ text }) => {
    const abandoned = (JSON.parse(text) as AuditRow).details['abandoned'] as Partial<Anchor> | undefined
    return abandoned?.chain_id === anchor.chain_id && abandoned.seq === anchor.seq && abandoned.hash === anchor.hash
  })
}

export const rolledBack = (): StartError =>
  new StartError(
    'ROLLBACK_DETECTED',
    EXIT.data,
    'the database is older than AUDIT_ANCHOR: changes that were made are missing from it',
    'put the newest database back with its -wal file; if they are lost, start once with serve --accept-rollback REASON',
  )

export interface AnchorKeeper {
  /** a row was stored */
  appended(): void
  /** saves now; a failure is logged */
  save(): Promise<void>
  /** saves once more */
  stop(): Promise<void>
}

/** Saves the anchor every minute, every 1000 rows, and at the end; AU-5. Never at the cost of a change. */
export function keepAnchor(read: Reader, dataDir: string, log: Log): AnchorKeeper {
  let savedSeq = -1
  let rows = 0
  let saving: Promise<void> | undefined

  async function save(): Promise<void> {
    rows = 0
    try {
      const head = await findHead(read)
      if (head === undefined || head.seq === savedSeq) return
      await writeAnchor(dataDir, head)
      savedSeq = head.seq
    } catch (error) {
      log.error('audit_anchor_failed', { cause: describeError(error) })
    } finally {
      saving = undefined
    }
  }

  const timer = setInterval(() => {
    saving ??= save()
  }, SAVE_EVERY_MS)
  timer.unref()
  async function saveNow(): Promise<void> {
    await saving
    saving ??= save()
    await saving
  }

  return {
    appended() {
      if (++rows >= SAVE_EVERY_ROWS) saving ??= save()
    },
    save: saveNow,
    async stop() {
      clearInterval(timer)
      await saveNow()
    },
  }
}
