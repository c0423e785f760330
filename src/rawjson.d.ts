/** JSON.parse source text access (TC39 stage 4), which TypeScript's library does not declare yet. */
interface JSON {
  rawJSON(text: string): object
  isRawJSON(value: unknown): boolean
  parse(
    text: string,
    reviver: (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown,
  ): unknown
}
