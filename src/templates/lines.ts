/** Where a tag stands in its text. */
export interface Extent {
  start: number
  end: number
}

/** The blanks and the line break that go with tags that have their lines to themselves. */
export interface Cuts {
  /** by a tag's start: where the literal before it ends */
  before: ReadonlyMap<number, number>
  /** by a tag's end: where the literal after it begins */
  after: ReadonlyMap<number, number>
}

/**
 * What the Mustache specification calls standalone: a tag alone on its line takes the whole line with it. Two tags on
 * one line are none of them alone.
 *
 * @param tags all but those of variables
 */
export function cutLines(text: string, tags: readonly Extent[]): Cuts {
  const before = new Map<number, number>()
  const after = new Map<number, number>()
  for (const { start, end } of tags) {
    let from = start
    while (isBlank(text[from - 1])) from--
    let to = end
    while (isBlank(text[to])) to++
    if ((from > 0 && text[from - 1] !== '\n') || (to < text.length && text[to] !== '\n')) continue
    before.set(start, from)
    after.set(end, Math.min(to + 1, text.length))
  }
  return { before, after }
}

const isBlank = (char: string | undefined): boolean => char !== undefined && char !== '\n' && /\s/.test(char)

/** As the Mustache specification says: a partial alone on its line is indented as its tag is. */
export const indentLines = (text: string, indent: string): string =>
  indent === '' ? text : text.replace(/(^|\n)(?=[^\n])/g, `$1${indent}`)
