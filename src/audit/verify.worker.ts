import { withSnapshot } from '../db/snapshot.ts'
import { describeError } from '../log.ts'
import type { Head } from './chain.ts'
import { type CheckedRows, checkRowsOf, type SeqRange } from './verify.ts'
import type { StoredKey } from './verify-keys.ts'

// A part of the trail, checked on a thread of its own; SQLite only.

export interface VerifyQuestion {
  dataDir: string
  head: Head
  keys: readonly StoredKey[]
  range: SeqRange
}
export type VerifyAnswer = { checked: CheckedRows } | { failure: Record<string, unknown> }

declare const self: { onmessage: (message: { data: VerifyQuestion }) => void; postMessage(answer: VerifyAnswer): void }

self.onmessage = async ({ data: { dataDir, head, keys, range } }) => {
  try {
    const options = { dialect: 'sqlite', dataDir, create: false } as const
    const checked = await withSnapshot(options, (snapshot) => checkRowsOf(snapshot, head, keys, range))
    self.postMessage({ checked })
  } catch (error) {
    self.postMessage({ failure: describeError(error) })
  }
}
