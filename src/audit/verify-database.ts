import { availableParallelism } from 'node:os'
import type { DatabaseOptions } from '../db/open.ts'
import { withSnapshot } from '../db/snapshot.ts'
import { type CheckedRows, type CheckRows, type Verified, verifyTrail } from './verify.ts'
import type { VerifyAnswer, VerifyQuestion } from './verify.worker.ts'
import { startWorker } from './worker.ts'

/** More threads would wait for the disk. */
const MOST_THREADS = 8

/**
 * Checks the trail of a database (`verifyTrail`), beside a running server or without one; of SQLite, on all cores.
 *
 * @throws StartError when there is no database, or it cannot be read
 */
export function verifyDatabase(options: DatabaseOptions, publicKey?: string): Promise<Verified> {
  return withSnapshot(options, (snapshot) =>
    options.dialect === 'postgres'
      ? verifyTrail(snapshot, publicKey)
      : verifyTrail(snapshot, publicKey, Math.min(MOST_THREADS, availableParallelism()), onThread(options.dataDir)),
  )
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
