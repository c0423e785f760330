/** A JSON number kept as its text: what `JSON.rawJSON('9223372036854775807')` gives. Prints as that text. */
export interface RawJson {
  readonly rawJSON: string
}

export const rawJson = (text: string): RawJson => JSON.rawJSON(text) as RawJson

export const isRawJson = (value: unknown): value is RawJson => JSON.isRawJSON(value)

/** One integer literal beyond ±(2⁵³−1) of a body: where it stood (keys and indices from the root) and its text. */
export interface IntegerLiteral {
  path: readonly (string | number)[]
  text: string
}

/**
 * Puts the text of big integers back where parsing made them imprecise (decision 25). Changes `root`, which must be
 * the caller's own parsed body. A path that leads nowhere is passed over.
 */
export function applyLiterals(root: Record<string, unknown>, literals: readonly IntegerLiteral[]): void {
  for (const { path, text } of literals) {
    const last = path.at(-1)
    let holder: unknown = root
    for (const step of path.slice(0, -1)) holder = childOf(holder, step)
    if (last !== undefined && typeof childOf(holder, last) === 'number') {
      ;(holder as Record<string | number, unknown>)[last] = rawJson(text)
    }
  }
}

const childOf = (holder: unknown, step: string | number): unknown =>
  typeof holder === 'object' && holder !== null && Object.hasOwn(holder, step)
    ? (holder as Record<string | number, unknown>)[step]
    : undefined
