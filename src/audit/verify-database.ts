import { availableParallelism } from 'node:os'
import type { DatabaseOptions } from '../db/open.ts'
import { type Snapshot, withSnapshot } from '../db/snapshot.ts'
import { type Anchor, anchorProblem, readAnchor } from './anchor.ts'
import { type CheckedRows, type CheckRows, checkRowsOf, type Verified, verifyTrail } from './verify.ts'
import type { VerifyAnswer, VerifyQuestion } from './verify.worker.ts'
import { startWorker } from './worker.ts'

/** More threads would wait for the disk. */
const MOST_THREADS = 8

interface VerifyOptions {
  /** base64; when given, the trail has to begin with this one */
  publicKey?: string | undefined
  /** of SQLite; all cores if not given */
  threads?: number
  /** checks only the rows of so many numbers back from the head */
  newest?: number | undefined
}

/**
 * Checks the trail of a database (`verifyTrail`), beside a running server or without one; of SQLite, against the anchor
 * beside it, too.
 *
 * @throws StartError when there is no database, or it cannot be read; 65 ANCHOR_UNREADABLE when nothing else is wrong
 */
export async function verifyDatabase(
  options: DatabaseOptions,
  { publicKey, newest, threads = Math.min(MOST_THREADS, availableParallelism()) }: VerifyOptions = {},
): Promise<Verified> {
  if (options.dialect === 'postgres')
    return withSnapshot(options, (snapshot) => verifyTrail(snapshot, publicKey, 1, checkHere(snapshot, newest)))
  const { dataDir } = options
  // Before the snapshot is taken: a running server moves it on.
  const [anchor] = await Promise.allSettled([readAnchor(dataDir)])
  return withSnapshot(options, async (snapshot) => {
    const here = () => verifyTrail(snapshot, publicKey, 1, checkHere(snapshot, newest))
    const isHere = threads === 1 || newest !== undefined
    const seen = isHere ? await here() : await verifyTrail(snapshot, publicKey, threads, onThread(dataDir))
    // Threads look at the database a moment later than this one: rows may have been pruned, and nothing be wrong.
    const verified = isHere || seen.fault === undefined ? seen : await here()
    if (verified.fault !== undefined) return verified
    if (anchor.status === 'rejected') throw anchor.reason
    return { ...verified, fault: await anchorFault(snapshot, anchor.value) }
  })
}

async function anchorFault({ read }: Snapshot, anchor: Anchor | undefined): Promise<Verified['fault']> {
  const problem = anchor && (await anchorProblem(read, anchor))
  return problem === undefined ? undefined : { seq: 0, problem }
}

const checkHere =
  (snapshot: Snapshot, newest = Number.MAX_SAFE_INTEGER): CheckRows =>
  (head, keys, { first, last }) =>
    checkRowsOf(snapshot, head, keys, { first: Math.max(first, head.seq - newest + 1), last })

const onThread =
  (dataDir: string): CheckRows =>
  (head, keys, range) => {
    const worker = startWorker('verify')
    const { promise, resolve, reject } = Promise.withResolvers<CheckedRows>()
    worker.onmessage = ({ data }: { data: VerifyAnswer }) => {
      if ('checked' in data) resolve(data.checked)
      else reject(new Error(`the trail cannot be read: ${JSON.stringify(data.failure)}`))
    }
    worker.onerror = ({ message }) => reject(new Error(message))
    worker.postMessage({ dataDir, head, keys, range } satisfies VerifyQuestion)
    return promise.finally(() => worker.terminate())
  }
