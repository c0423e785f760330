import type { Reader } from '../db/database.ts'
import { asReader, connect } from '../db/sqlite-file.ts'
import { describeError } from '../log.ts'
import { standBack } from './priority.ts'
import type { ReaderAnswer, ReaderQuestion } from './reader.ts'
import { listAuditRows } from './store.ts'
import { createTotals } from './totals.ts'

// Long reads of the audit trail, beside the thread that renders (decision 2). Reads only; SQLite only.

declare const self: { onmessage: (message: { data: ReaderQuestion }) => void; postMessage(answer: ReaderAnswer): void }

standBack()

let reader: Reader | undefined
const totals = createTotals()

self.onmessage = async ({ data: { id, path, filter, page } }) => {
  try {
    reader ??= asReader(connect(path, 'read'))
    self.postMessage({ id, found: await listAuditRows(reader, filter, page, totals) })
  } catch (error) {
    self.postMessage({ id, failure: describeError(error) })
  }
}
