import { invalidField } from '../errors.ts'

/** `size` undefined: all rows, which is what clients that never page expect (file 00 section 6). */
export interface Page {
  index: number
  size: number | undefined
}

const MAX_PAGE_SIZE = 1000

/** Both spellings of each name; pages count from 0. The contract has made sure of digits. */
export function readPage(
  query: { current_page?: string; currentPage?: string; page_size?: string; pageSize?: string },
  defaultSize?: number,
): Page {
  for (const [name, other] of [
    ['current_page', 'currentPage'],
    ['page_size', 'pageSize'],
  ] as const)
    if (query[name] !== undefined && query[other] !== undefined)
      throw invalidField(name, `is ${other} in another spelling; send one of the two`)
  const index = query.current_page ?? query.currentPage
  const size = query.page_size ?? query.pageSize
  if (size !== undefined && (Number(size) < 1 || Number(size) > MAX_PAGE_SIZE))
    throw invalidField('page_size', `must be from 1 to ${MAX_PAGE_SIZE}`)
  const fallback = defaultSize ?? (index === undefined ? undefined : 100)
  return { index: Number(index ?? 0), size: size === undefined ? fallback : Number(size) }
}

interface Pageable<Row> extends PromiseLike<Row[]> {
  limit(n: number): { offset(n: number): PromiseLike<Row[]> }
}

/** One page of a query and the count of all its rows. */
export async function paged<Row>(
  rows: Pageable<Row>,
  total: PromiseLike<{ n: number }[]>,
  { index, size }: Page,
): Promise<{ rows: Row[]; total: number }> {
  if (size === undefined) {
    const all = await rows
    return { rows: all, total: all.length }
  }
  const [page, [counted]] = await Promise.all([rows.limit(size).offset(index * size), total])
  return { rows: page, total: counted?.n ?? 0 }
}

/** The list envelope of the wire. */
export const listOf = <T>(data: T[], total: number): { object: 'list'; total: number; data: T[] } => ({
  object: 'list',
  total,
  data,
})
