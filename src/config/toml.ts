/** A fault in the text, with the line it begins on (1 is the first). */
export interface TomlFault {
  line: number
  message: string
}

interface Statement {
  line: number
  text: string
}

/**
 * Parses TOML and finds the line of each key, which Bun.TOML does not tell (the line of its errors is that of the
 * calling JavaScript). A statement that does not parse is reported and left out, so that one run finds every fault.
 *
 * @returns `lines`: dotted path (`server.port`, `render.models[0].match`, a table's own path too) → line
 */
export function parseToml(text: string): {
  value: Record<string, unknown>
  lines: Map<string, number>
  faults: TomlFault[]
} {
  const all = statements(text)
  const { accepted, faults } = sift(text, all)
  return { value: parse(accepted.map((statement) => statement.text).join('\n')), lines: linesOf(accepted), faults }
}

const parse = (text: string) => Bun.TOML.parse(text) as Record<string, unknown>

/** Splits the statements into those that parse after the ones before them, and the faults of the others. */
function sift(text: string, all: Statement[]): { accepted: Statement[]; faults: TomlFault[] } {
  if (fault(text) === undefined) return { accepted: all, faults: [] }
  const accepted: Statement[] = []
  const faults: TomlFault[] = []
  let before = ''
  let headerRefused = false
  for (const statement of all) {
    const isHeader = statement.text.startsWith('[')
    if (headerRefused && !isHeader) continue
    const message = fault(`${before}${statement.text}\n`)
    headerRefused = isHeader && message !== undefined
    if (message !== undefined) faults.push({ line: statement.line, message })
    else {
      accepted.push(statement)
      before += `${statement.text}\n`
    }
  }
  return { accepted, faults }
}

/** The parser's words without the value that it quotes, which may be a secret. */
function fault(text: string): string | undefined {
  try {
    parse(text)
    return undefined
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return message.replace(/^TOML Parse error: /, '').replace(/: *".*$/s, '')
  }
}

function linesOf(accepted: Statement[]): Map<string, number> {
  const lines = new Map<string, number>()
  const tablesSeen = new Map<string, number>()
  let prefix = ''
  for (const { line, text } of accepted) {
    if (!text.startsWith('[')) record(parse(text), prefix, line, lines)
    else {
      const name = chain(parse(text))
      const count = tablesSeen.get(name) ?? 0
      tablesSeen.set(name, count + 1)
      prefix = text.startsWith('[[') ? `${name}[${count}]` : name
      if (!lines.has(prefix)) lines.set(prefix, line)
    }
  }
  return lines
}

/** The dotted path of a header that was parsed on its own: `{ a: { b: {} } }` is `a.b`. */
function chain(value: unknown): string {
  const table = Array.isArray(value) ? value[0] : value
  const [entry] = Object.entries(table as object)
  if (entry === undefined) return ''
  const below = chain(entry[1])
  return below === '' ? entry[0] : `${entry[0]}.${below}`
}

function record(value: unknown, path: string, line: number, lines: Map<string, number>): void {
  if (path !== '' && !lines.has(path)) lines.set(path, line)
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) record(item, `${path}[${i}]`, line, lines)
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) record(item, path === '' ? key : `${path}.${key}`, line, lines)
  }
}

/** What a statement is made of: comments, the four kinds of string, brackets, line ends, anything else. */
const TOKEN =
  /#[^\n]*|"""[\s\S]*?(?:"""+|$)|'''[\s\S]*?(?:'''+|$)|"(?:\\[^\n]|[^"\\\n])*"?|'[^'\n]*'?|[[{]|[\]}]|\n|[^#"'[\]{}\n]+/g

/** A header, which is one line, or a key with its value, up to the first line end outside of brackets and strings. */
function statements(text: string): Statement[] {
  const found: Statement[] = []
  let line = 1
  let start = 1
  let depth = 0
  let current = ''
  const end = () => {
    if (current.trim() !== '') found.push({ line: start, text: current.trim() })
    current = ''
    depth = 0
  }
  for (const [token] of text
    .replace(/^\uFEFF/, '')
    .replaceAll('\r\n', '\n')
    .matchAll(TOKEN)) {
    if (token === '\n' && (depth <= 0 || current.trimStart().startsWith('['))) end()
    else if (!token.startsWith('#')) {
      if (current.trim() === '') start = line
      if (token === '[' || token === '{') depth++
      if (token === ']' || token === '}') depth--
      current += token
    }
    line += token.split('\n').length - 1
  }
  end()
  return found
}
