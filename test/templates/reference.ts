/**
 * A slow reference for filling: it takes the tree that a template was written from, so it shares neither the parser nor
 * the compiled form, and writes the same tree as template text.
 */
export type Tree = Item[]
export type Item =
  | { kind: 'text'; text: string }
  | { kind: 'variable'; name: string }
  | { kind: 'section'; name: string; inside: Tree }
  | { kind: 'inverted'; name: string; inside: Tree }
  | { kind: 'partial'; name: string; inside: Tree }

/** `write` makes a value's text out of the value; `literal` makes the template's own text fit where it stands. */
export interface Writing {
  write(value: unknown): string
  literal(text: string): string
}

export const plain: Writing = { write: textOf, literal: (text) => text }

/** Text inside a string literal of the JSON that a call's arguments are, itself inside a literal of a raw template. */
export const insideArguments: Writing = {
  write: (value) => insideJson(insideJson(textOf(value))),
  literal: (text) => insideJson(insideJson(text)),
}

export const insideJson = (text: string): string => JSON.stringify(text).slice(1, -1)

/**
 * A template text as it may stand inside a JSON string literal: each character plainly where it can be, shortly escaped,
 * or as `\uXXXX`, as `ways` say in turn. Tags stay.
 */
export function spell(template: string, ways: ('short' | 'unicode')[]): string {
  let at = 0
  const spellOne = (char: string): string =>
    ways[at++ % ways.length] === 'short' ? insideJson(char) : `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
  return template
    .split(/(\{\{[^{}]*\}\})/)
    .map((piece, i) =>
      i % 2 === 1 ? piece : Array.from({ length: piece.length }, (_, j) => spellOne(piece[j]!)).join(''),
    )
    .join('')
}

/** What the template must become. `scopes`: innermost first, the defaults last. */
export function evaluate(tree: Tree, scopes: unknown[], writing: Writing = plain): string {
  return tree.map((item) => evaluateItem(item, scopes, writing)).join('')
}

/** The template as an author writes it. `literal` as in `Writing`: a raw template's text stands inside JSON. */
export function print(tree: Tree, literal: Writing['literal'] = plain.literal): string {
  return tree
    .map((item) => {
      if (item.kind === 'text') return literal(item.text)
      if (item.kind === 'variable') return `{{${item.name}}}`
      if (item.kind === 'partial') return `{{>${item.name}}}`
      return `{{${item.kind === 'section' ? '#' : '^'}${item.name}}}${print(item.inside, literal)}{{/${item.name}}}`
    })
    .join('')
}

/** The texts of all partials in a tree, by name. */
export function partialTexts(tree: Tree): Record<string, string> {
  const texts: Record<string, string> = {}
  for (const item of tree) {
    if (!('inside' in item)) continue
    if (item.kind === 'partial') texts[item.name] = print(item.inside)
    Object.assign(texts, partialTexts(item.inside))
  }
  return texts
}

function evaluateItem(item: Item, scopes: unknown[], writing: Writing): string {
  if (item.kind === 'text') return writing.literal(item.text)
  if (item.kind === 'partial') return evaluate(item.inside, scopes, writing)
  const value = find(item.name, scopes)
  if (item.kind === 'variable') return writing.write(value)
  const shown = !isEmpty(value)
  if (item.kind === 'inverted') return shown ? '' : evaluate(item.inside, scopes, writing)
  if (!shown) return ''
  const items = Array.isArray(value) ? value : [value]
  return items.map((one) => evaluate(item.inside, [one, ...scopes], writing)).join('')
}

function find(name: string, scopes: unknown[]): unknown {
  if (name === '.') return scopes[0]
  const [first, ...rest] = name.split('.')
  const scope = scopes.find((one) => ownValue(one, first!) !== ABSENT)
  let value = scope === undefined ? ABSENT : ownValue(scope, first!)
  for (const key of rest) value = ownValue(value, key)
  return value === ABSENT ? undefined : value
}

const ABSENT = Symbol('absent')

function ownValue(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null) return ABSENT
  if (Array.isArray(value) && !/^\d+$/.test(key)) return ABSENT
  const entry = Object.entries(value).find(([own]) => own === key)
  return entry === undefined ? ABSENT : entry[1]
}

const isEmpty = (value: unknown): boolean =>
  [undefined, null, false, '', 0].includes(value as null) || (Array.isArray(value) && value.length === 0)

function textOf(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
