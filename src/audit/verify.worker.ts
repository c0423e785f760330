import type { DatabaseOptions } from '../db/open.ts'
import { withSnapshot } from '../db/snapshot.ts'
import { describeError } from '../log.ts'
import type { Head } from './chain.ts'
import { standBack } from './priority.ts'
import { type CheckedRows, checkRowsOf, type SeqRange, type Verified } from './verify.ts'
import { verifyDatabase } from './verify-database.ts'
import type { StoredKey } from './verify-keys.ts'

// A part of the trail, or all of it, checked on a thread of its own.

/** A part; SQLite only. */
export interface VerifyQuestion {
  dataDir: string
  head: Head
  keys: readonly StoredKey[]
  range: SeqRange
}
export type VerifyAnswer = { checked: CheckedRows } | { failure: Record<string, unknown> }

/** The trail of a database, or its newest rows. */
export interface TrailQuestion {
  options: DatabaseOptions
  newest: number | undefined
}
export type TrailAnswer = { fault: Verified['fault'] } | { failure: Record<string, unknown> }

declare const self: {
  onmessage: (message: { data: VerifyQuestion | TrailQuestion }) => void
  postMessage(answer: VerifyAnswer | TrailAnswer): void
}

standBack()

self.onmessage = async ({ data }) => {
  try {
    self.postMessage('options' in data ? await checkTrail(data) : await checkPart(data))
  } catch (error) {
    self.postMessage({ failure: describeError(error) })
  }
}

async function checkPart({ dataDir, head, keys, range }: VerifyQuestion): Promise<VerifyAnswer> {
  const options = { dialect: 'sqlite', dataDir, create: false } as const
  return { checked: await withSnapshot(options, (snapshot) => checkRowsOf(snapshot, head, keys, range)) }
}

async function checkTrail({ options, newest }: TrailQuestion): Promise<TrailAnswer> {
  const { fault } = await verifyDatabase(options, { threads: 1, newest })
  return { fault }
}
