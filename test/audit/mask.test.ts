import { describe, expect, test } from 'bun:test'
import { newApiKey } from '../../src/api-keys/key.ts'
import { holdsKey, masked, maskedHeaders, maskedUri, queryOf } from '../../src/audit/mask.ts'
import { TEST_AUDIT_KEYS } from '../support/audit.ts'

const CANARY = 'kGqL8xw-canary-Zp31'
const fingerprint = (field: string, value: string) => TEST_AUDIT_KEYS.fingerprint('things', 'id', field, value)
const mask = (value: unknown) => masked(value, fingerprint)

describe('a row of the trail', () => {
  const SENT = [
    { key: CANARY },
    { api_key: CANARY },
    { apiKey: CANARY },
    { token: CANARY },
    { inviteToken: CANARY },
    { password: CANARY },
    { client_secret: CANARY },
    { vault_secret_id: CANARY },
    { awsSecretAccessKey: CANARY },
    { 'x-api-key': CANARY },
    { Authorization: CANARY },
    { auth_config: { aws_secret_access_key: CANARY, aws_role_arn: CANARY } },
    { aws_access_key_id: CANARY },
    { authentication: { awsRoleArn: CANARY } },
    { masked_aws_external_id: CANARY },
    { auth_config: { anything: [{ at: { all: CANARY } }] } },
    { configurations: { vertex_service_account_json: CANARY } },
    { configurations: { custom_headers: { 'x-tenant': CANARY } } },
    { list: [{ before: { key: CANARY } }, { after: { credentials: [CANARY] } }] },
    { key: { nested: CANARY } },
  ]
  test.each(SENT.map((body) => [JSON.stringify(body), body] as const))(
    'holds a fingerprint where %s is sent',
    (_sent, body) => {
      const text = JSON.stringify(mask(body))
      expect(text).not.toContain(CANARY)
      expect(text).toMatch(/\{"hmac":"[0-9a-f]{16}"\}/)
      expect(JSON.stringify(mask(body))).toBe(text)
    },
  )

  test('shows what is no secret, with its own type', () => {
    const body = {
      name: 'n',
      virtual_key: 'openai-prod',
      secret_mappings: [{ target_field: 'key', secret_key: 'password', secret_reference_id: 'r' }],
      auth_config: { aws_auth_type: 'accessKey', aws_region: 'eu-west-1' },
      max_tokens: 5,
      scopes: ['prompts.render'],
      key_id: 'k',
      token: null,
      flag: true,
    }
    expect(mask(body)).toEqual(body)
  })

  test('gives the same fingerprint for the same secret in the same place, and another one anywhere else', () => {
    const of = (field: string, value = CANARY) => JSON.stringify(mask({ [field]: value }))
    const elsewhere = JSON.stringify(
      masked({ key: CANARY }, (f, v) => TEST_AUDIT_KEYS.fingerprint('things', 'id2', f, v)),
    )
    expect(of('key')).toBe(of('key'))
    expect(new Set([of('key'), of('key', `${CANARY}x`), of('token').replace('token', 'key'), elsewhere]).size).toBe(4)
    // A boundary moved between two parts is another place.
    expect(TEST_AUDIT_KEYS.fingerprint('a', 'bc', 'd', 'e')).not.toBe(TEST_AUDIT_KEYS.fingerprint('ab', 'c', 'd', 'e'))
  })

  test('holds no API key of ours, wherever it was put', () => {
    const key = newApiKey('a')
    const text = JSON.stringify([
      mask({ name: `my ${key}`, [key]: 1, list: [key] }),
      maskedUri(`/v1/${key}?x=${key}`),
      maskedHeaders(new Headers({ 'user-agent': key, accept: key, 'x-service-api-key': key, cookie: key }), [
        'x-service-api-key',
      ]),
    ])
    expect(text).not.toContain(key.slice(4))
  })

  const KEY = newApiKey('a')
  const percent = (text: string) => Array.from(text, (c) => `%${c.charCodeAt(0).toString(16)}`).join('')
  test.each([
    ['its first letter', `%67${KEY.slice(1)}`],
    ['its underscores', KEY.replaceAll('_', '%5F')],
    ['all of it', percent(KEY)],
    ['all of it, in capitals', percent(KEY).toUpperCase()],
    ['all of it, twice', percent(KEY).replaceAll('%', '%25')],
    ['all but its beginning', `gth_a_${percent(KEY.slice(6))}`],
  ])('holds no API key of which %s is percent-encoded', (_which, encoded) => {
    expect(holdsKey(`/v1/labels?x=${encoded}`)).toBe(true)
    const uri = maskedUri(`/v1/${encoded}/y?x=${encoded}&a=%20b`)
    expect(uri).toBe('/v1/[key]/y?x=[key]&a=%20b')
  })

  test.each(['/v1/labels?x=%67t', '/v1/x%', '/v1/%zz', '/v1/gt%68', '/v1/lengths?a=%25'])(
    'sees no key in %s',
    (uri) => {
      expect(holdsKey(uri)).toBe(false)
      expect(maskedUri(uri)).toBe(uri)
    },
  )

  test('is looked through for keys in no time, whatever stands in it', () => {
    const started = performance.now()
    for (const text of ['%25', '%', '25', 'g%25', 'gth', '%67%74%68', '%2525']) holdsKey(`%${text.repeat(50_000)}`)
    expect(performance.now() - started).toBeLessThan(1000)
  })

  test('keeps a long text by its size and hash, so that rows stay small', () => {
    const text = 'x'.repeat(5000)
    expect(mask({ string: text })).toEqual({ string: { bytes: 5000, sha256: Bun.SHA256.hash(text, 'hex') } })
  })

  test.each([
    ['/v1/x?token=abc&a=1', '/v1/x?token=[masked]&a=1'],
    ['/v1/x?api%5Fkey=abc', '/v1/x?api%5Fkey=[masked]'],
    ['/v1/x?apiKey=abc#y', '/v1/x?apiKey=[masked]'],
    ['/v1/x?a=1?key=2', '/v1/x?a=1?key=2'],
    ['/v1/x?%zz=1', '/v1/x?%zz=1'],
    ['/v1/x?', '/v1/x?'],
    ['/v1/x', '/v1/x'],
  ])('of the URI %s it keeps %s', (uri, kept) => expect(maskedUri(uri)).toBe(kept))

  test('keeps the query by name, and of the headers only those on its list, in one printable line', () => {
    expect(queryOf('/v1/x?a=1&b=%20c')).toEqual({ a: '1', b: ' c' })
    const headers = new Headers({
      'user-agent': `a\u007fb${'x'.repeat(400)}`,
      'x-other': CANARY,
      authorization: CANARY,
    })
    const kept = maskedHeaders(headers, ['x-service-api-key'])
    expect(kept).toEqual({ 'user-agent': expect.stringMatching(/^a\\u007fbx+$/), authorization: '*****' })
    expect(kept['user-agent']).toHaveLength(256)
  })
})
