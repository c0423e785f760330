import type { Gatehouse } from '../../src/gatehouse.ts'

/** What a refusal writes, too: its row, and the revision that tells other nodes of a commit. */
const NOT_DATA: ReadonlySet<string> = new Set(['auditEvents', 'auditHead', 'installation', 'changes'])

/** A hash of each table, to see that a call changed nothing: the audit trail aside, which says who tried. */
export async function dataOf({ read }: Pick<Gatehouse, 'read'>): Promise<Record<string, string>> {
  const tables = Object.entries(read.tables).filter(([name]) => !NOT_DATA.has(name))
  const hashes = tables.map(async ([name, table]) => {
    const rows = (await read.select().from(table)).map((row) => JSON.stringify(row)).sort()
    return [name, Bun.hash(rows.join('\n')).toString(36)] as const
  })
  return Object.fromEntries(await Promise.all(hashes))
}
