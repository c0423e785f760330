// Checks an export of the audit trail by the method in the README alone: node verify-export.mjs FILE PUBLIC_KEY
import { createHash, createPublicKey, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'

const [file, firstPublicKey] = process.argv.slice(2)
const text = readFileSync(file, 'utf8')
const chain = []
for (const line of text.startsWith('{') ? text.trimEnd().split('\n') : csvLines(text)) chain.push(JSON.parse(line))
const head = JSON.parse(chain.shift().text)
const tail = chain.pop()
expect(tail?.kind === 'signature', 'the export is cut off')
let hash = head.previous_hash
for (const row of chain) {
  const bytes = ['gatehouse-audit-v1', head.chain_id, row.seq, hash, row.text].join('\n')
  hash = createHash('sha256').update(bytes).digest('hex')
  expect(row.kind === 'row' && hash === row.hash, `row ${row.seq} is wrong`)
}
let key = head.keys[0]
expect(key.public_key === firstPublicKey, 'the public key is another one')
const { last_hash, last_seq, count, key_id, signature } = JSON.parse(tail.text)
for (const next of head.keys.slice(1)) {
  expect(isSigned(key, ['key', key.id, next.id, next.public_key], next.voucher), `key ${next.id} is not vouched for`)
  key = next
}
expect(key.id === key_id && last_hash === hash && count === chain.length, 'rows are missing')
expect(isSigned(key, ['export', head.previous_hash, last_seq, last_hash, count, key_id], signature), 'it is not signed')
process.stdout.write(`${count} rows up to number ${last_seq}, all as they were signed\n`)

function isSigned({ public_key }, [of, ...parts], signature) {
  const der = Buffer.from(`302a300506032b6570032100${Buffer.from(public_key, 'base64').toString('hex')}`, 'hex')
  const lines = [`gatehouse-audit-${of}-v1`, head.chain_id, ...parts].join('\n')
  const publicKey = createPublicKey({ key: der, format: 'der', type: 'spki' })
  return verify(null, Buffer.from(lines), publicKey, Buffer.from(signature, 'base64'))
}
function expect(holds, problem) {
  if (!holds) throw new Error(problem)
}
function csvLines(csv) {
  const records = [...csv.matchAll(/^(row|chain|signature),(\d*),(\w*),"((?:[^"]|"")*)"/gm)]
  return records.map(([, kind, seq, hash, text]) =>
    JSON.stringify({ kind, seq, hash, text: text.replaceAll('""', '"') }),
  )
}
