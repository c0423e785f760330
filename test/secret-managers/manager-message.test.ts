import { describe, expect, test } from 'bun:test'
import { managerMessage } from '../../src/secret-managers/manager-message.ts'

// Decision 47: what a manager says is shown to whoever tests a reference, unless it repeats what it was sent.

const TOKEN = 'hvs.CAESIJ"q8\\w/+r7%<&9kPzT'
const VAULT = {
  vault_auth_type: 'approle',
  vault_addr: 'https://vault.example.com:8200',
  vault_role_id: 'role-of-the-team',
  vault_secret_id: '5f0c7f1e-8a3b-4f6d-9c2e-1b7a6d5e4f30',
  token: TOKEN,
}
const ROLE = {
  aws_auth_type: 'assumedRole',
  aws_role_arn: 'arn:aws:iam::123456789012:role/secrets-reader',
  aws_region: 'eu-central-1',
  accessKeyId: 'ASIAQ7ZK3M2N5P8RTVWX',
}
const ENTRA = {
  azure_auth_mode: 'entra',
  azure_entra_tenant_id: 'b7a6d5e4-0c7f-4f6d-9c2e-5f0c7f1e8a3b',
  azure_entra_client_id: '1b7a6d5e-8a3b-4f6d-9c2e-7f1e5f0c4f30',
  azure_entra_client_secret: 'Q~8xYz0.AbCdEfGhIjKlMnOpQrStUvWx é',
  azure_vault_url: 'https://team.vault.azure.net',
}

test.each<[what: string, text: string, withheld: object]>([
  ['a plain refusal', '1 error occurred: * permission denied', VAULT],
  ['the kind of a login', 'token or approle login needed at https://vault.example.com/docs', VAULT],
  ['an account', 'User: arn:aws:sts::123456789012:assumed-role/other/session is not authorized', ROLE],
  ['a request id', 'denied (request 0b0a1c2e-77aa-4000-8000-00000000abcd, trace QmFzaWMgd29yZHMgYW5kIG1vcmU=)', VAULT],
  [
    'an error number',
    'AADSTS7000215: Invalid client secret provided. Trace ID: 9c2e8a3b-4f6d-4f30-b7a6-d5e40c7f5f0c',
    ENTRA,
  ],
  ['a digest', 'expected sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08', VAULT],
])('%s is shown', (_, text, withheld) => {
  expect(managerMessage(text, withheld)).toBe(text)
})

const base64 = (text: string) => Buffer.from(text).toString('base64')
const hex = (text: string) => Buffer.from(text).toString('hex')
const units = (text: string, write: (hex: string) => string) =>
  [...text].map((c) => write(c.charCodeAt(0).toString(16).padStart(4, '0'))).join('')

describe.each<[what: string, write: (value: string) => string]>([
  ['as it is', (value) => value],
  ['in other words', (value) => `no such token "${value}" here`],
  ['in capitals', (value) => value.toUpperCase()],
  ['in JSON', (value) => JSON.stringify({ sent: value })],
  ['every character of JSON escaped', (value) => units(value, (unit) => `\\u${unit}`)],
  ['in HTML', (value) => value.replace(/[^a-z]/gi, (c) => `&#${c.charCodeAt(0)};`)],
  ['every character of HTML escaped', (value) => units(value, (unit) => `&#${Number.parseInt(unit, 16)};`)],
  ['in a URL', encodeURIComponent],
  ['in a form', (value) => new URLSearchParams({ value }).toString()],
  ['every byte of a URL escaped', (value) => hex(value).replace(/../g, '%$&')],
  ['in base64', base64],
  ['in base64 behind a byte', (value) => base64(`x${value}`)],
  ['in base64 behind two', (value) => base64(`xy${value}z`)],
  ['in base64 in a word', (value) => `ab${base64(value)}`],
  ['in base64url', (value) => Buffer.from(value).toString('base64url')],
  ['in base64 in a URL', (value) => encodeURIComponent(base64(value))],
  ['in hex', (value) => `0x${hex(value).toUpperCase()}`],
  ['in hex behind half a byte', (value) => `f${hex(value)}`],
  ['with a NUL behind each', (value) => [...value].join('\u0000')],
  ['on lines', (value) => value.replace(/.{9}/g, '$&\n')],
  ['with dashes', (value) => value.replace(/.{4}/g, '$&-')],
])('a value %s', (_, write) => {
  test.each<[what: string, value: string, withheld: object]>([
    ['a token', TOKEN, VAULT],
    ['a secret id', VAULT.vault_secret_id, VAULT],
    ['a role id', VAULT.vault_role_id, VAULT],
    ['an address', VAULT.vault_addr, VAULT],
    ['a role', ROLE.aws_role_arn, ROLE],
    ['a key id', ROLE.accessKeyId, ROLE],
    ['a client secret', ENTRA.azure_entra_client_secret, ENTRA],
    ['a client id', ENTRA.azure_entra_client_id, ENTRA],
  ])('is not shown: %s', (_what, value, withheld) => {
    expect(managerMessage(`refused: ${write(value)}.`, withheld)).toBeUndefined()
  })
})

test.each<[what: string, text: string]>([
  ['its beginning', `invalid token ${TOKEN.slice(0, 20)}…`],
  ['its end', `invalid token …${TOKEN.slice(-20)}`],
  ['its middle, in base64', base64(`token=${TOKEN.slice(2, 26)}`)],
  ['across the end of what is shown', `${'x'.repeat(185)}${TOKEN}`],
  ['a piece of a secret id', `unknown secret id ${VAULT.vault_secret_id.slice(0, 18)}`],
])('a piece of a login is not shown: %s', (_, text) => {
  expect(managerMessage(text, VAULT)).toBeUndefined()
})

test('an answer of a megabyte, and a login of the longest kind, take no time', () => {
  const startedAt = performance.now()
  const value = Array.from({ length: 4096 }, (_, i) => String.fromCharCode(97 + (i % 23))).join('')
  for (let i = 0; i < 20; i++) managerMessage('ab1'.repeat(350_000), { vault_token: value })
  expect((performance.now() - startedAt) / 20).toBeLessThan(100)
})
