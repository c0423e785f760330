/**
 * Where an offset lies in a text, for people: `line 3, column 14`, both counted from 1, columns in UTF-16 units.
 * The digits 404 are broken up: clients take them anywhere in the text of an error for "gone" (decision 3).
 */
export function placeOf(text: string, offset: number): string {
  const before = text.slice(0, offset)
  const line = before.split('\n').length
  const column = before.length - before.lastIndexOf('\n')
  return `line ${spell(line)}, column ${spell(column)}`
}

/** A number as it may stand in a message. */
export const spell = (number: number): string => String(number).replaceAll('404', '40_4')
