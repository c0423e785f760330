import type { Database } from '../db/database.ts'
import { storageUnavailable } from '../db/errors.ts'
import { type AuditFilter, type FoundRow, listAuditRows } from './store.ts'
import { createTotals } from './totals.ts'
import { startWorker } from './worker.ts'

export interface Found {
  rows: FoundRow[]
  total: number
}
interface Page {
  index: number
  size: number
}
export interface ReaderQuestion {
  id: number
  /** of the database file */
  path: string
  filter: AuditFilter
  page: Page
}
export type ReaderAnswer = { id: number } & ({ found: Found } | { failure: Record<string, unknown> })

export interface AuditReader {
  /** @throws GatehouseError storage_unavailable when the trail cannot be read */
  list(filter: AuditFilter, page: Page): Promise<Found>
  close(): void
}

/**
 * Reads the trail without holding up other requests: counting millions of rows of SQLite takes a thread, which is
 * started with the first question. PostgreSQL does the counting itself.
 */
export function createAuditReader({ dialect, read }: Pick<Database, 'dialect' | 'read'>, dataDir: string): AuditReader {
  if (dialect === 'postgres') {
    const totals = createTotals()
    return { list: (filter, page) => listAuditRows(read, filter, page, totals), close() {} }
  }
  const asked = new Map<number, PromiseWithResolvers<Found>>()
  let worker: Worker | undefined
  let count = 0

  function start(): Worker {
    const started = startWorker('reader')
    started.unref()
    started.onmessage = ({ data }: { data: ReaderAnswer }) => {
      const question = asked.get(data.id)
      asked.delete(data.id)
      if ('found' in data) question?.resolve(data.found)
      else question?.reject(unreadable(data.failure))
    }
    started.onerror = ({ message }) => {
      for (const question of asked.values()) question.reject(unreadable({ message }))
      asked.clear()
      worker = undefined
    }
    return started
  }

  return {
    list(filter, page) {
      worker ??= start()
      const id = ++count
      const question = Promise.withResolvers<Found>()
      asked.set(id, question)
      worker.postMessage({ id, path: `${dataDir}/gatehouse.db`, filter, page } satisfies ReaderQuestion)
      return question.promise
    },
    close() {
      for (const question of asked.values()) question.reject(unreadable({ message: 'closed' }))
      worker?.terminate()
    },
  }
}

const unreadable = (failure: Record<string, unknown>) =>
  storageUnavailable(new Error(`the audit reader failed: ${JSON.stringify(failure)}`))
