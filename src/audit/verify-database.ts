import { availableParallelism } from 'node:os'
import type { DatabaseOptions } from '../db/open.ts'
import { type Snapshot, withSnapshot } from '../db/snapshot.ts'
import { type Anchor, anchorProblem, readAnchor } from './anchor.ts'
import { type CheckedRows, type CheckRows, type Verified, verifyTrail } from './verify.ts'
import type { VerifyAnswer, VerifyQuestion } from './verify.worker.ts'
import { startWorker } from './worker.ts'

/** More threads would wait for the disk. */
const MOST_THREADS = 8

/**
 * Checks the trail of a database (`verifyTrail`), beside a running server or without one; of SQLite, on all cores, and
 * against the anchor beside it.
 *
 * @throws StartError when there is no database, or it cannot be read; 65 ANCHOR_UNREADABLE when nothing else is wrong
 */
export async function verifyDatabase(options: DatabaseOptions, publicKey?: string): Promise<Verified> {
  if (options.dialect === 'postgres') return withSnapshot(options, (snapshot) => verifyTrail(snapshot, publicKey))
  const { dataDir } = options
  // Before the snapshot is taken: a running server moves it on.
  const [anchor] = await Promise.allSettled([readAnchor(dataDir)])
  const threads = Math.min(MOST_THREADS, availableParallelism())
  return withSnapshot(options, async (snapshot) => {
    const verified = await verifyTrail(snapshot, publicKey, threads, onThread(dataDir))
    if (verified.fault !== undefined) return verified
    if (anchor.status === 'rejected') throw anchor.reason
    return { ...verified, fault: await anchorFault(snapshot, anchor.value) }
  })
}

async function anchorFault({ read }: Snapshot, anchor: Anchor | undefined): Promise<Verified['fault']> {
  const problem = anchor && (await anchorProblem(read, anchor))
  return problem === undefined ? undefined : { seq: 0, problem }
}

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
