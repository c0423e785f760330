import { afterAll, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { type Listening, startServer } from '../../src/http/server.ts'
import { StartError } from '../../src/start-error.ts'
import { freshFolder } from '../support/database.ts'
import { openTestGatehouse, type TestGatehouse } from '../support/gatehouse.ts'

// certificate.pem and key.pem were made for these tests alone, for localhost and for a hundred years.
const CERTIFICATE = join(import.meta.dir, 'tls/certificate.pem')
const KEY = join(import.meta.dir, 'tls/key.pem')
const certificate = readFileSync(CERTIFICATE, 'utf8')

const files = freshFolder()
afterAll(() => rmSync(files, { recursive: true }))
const file = (name: string, text: string): string => {
  writeFileSync(join(files, name), text)
  return join(files, name)
}
const otherKey = generateKeyPairSync('ec', {
  namedCurve: 'P-256',
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
})

/** Starts a server with these files; whatever comes of it is closed again. */
async function withServer(
  cert: string,
  key: string,
  use: (server: Listening, it: TestGatehouse) => Promise<void>,
): Promise<void> {
  const config = `[server]\nport = 0\ntls_cert_file = ${JSON.stringify(cert)}\ntls_key_file = ${JSON.stringify(key)}\n`
  const it = await openTestGatehouse('sqlite', config)
  try {
    const server = await startServer(it.gatehouse)
    await use(server, it)
    await server.stop()
  } finally {
    await it.close()
  }
}

test('TLS from files: 1.2 and later, with HSTS on every answer', async () => {
  await withServer(CERTIFICATE, KEY, async ({ url, port }, { made }) => {
    expect(url).toBe(`https://127.0.0.1:${port}`)
    const tls = { ca: certificate }
    const headers = { 'x-service-api-key': made.admin_key }
    const paths = {
      '/livez': 200,
      '/metrics': 200,
      '/docs': 200,
      '/v1/prompts': 200,
      '/v1/prompts/x': 404,
      '/nope': 404,
    }
    for (const [path, status] of Object.entries(paths)) {
      const answer = await fetch(`https://localhost:${port}${path}`, { headers, tls })
      expect(answer.status, path).toBe(status)
      expect(answer.headers.get('strict-transport-security'), path).toBe('max-age=31536000')
    }
    const handshake = (version: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3') =>
      new Promise<string>((resolve) => {
        const socket = connect({ port, host: '127.0.0.1', ...tls, minVersion: version, maxVersion: version })
        socket.on('secureConnect', () => {
          resolve(socket.getProtocol() ?? '')
          socket.destroy()
        })
        socket.on('error', () => resolve('refused'))
      })
    expect([await handshake('TLSv1.1'), await handshake('TLSv1.2'), await handshake('TLSv1.3')]).toEqual([
      'refused',
      'TLSv1.2',
      'TLSv1.3',
    ])
    expect(fetch(`http://127.0.0.1:${port}/livez`)).rejects.toThrow()
  })
})

describe('files that cannot serve end the start with 78', () => {
  test.each([
    ['the key of another certificate', CERTIFICATE, file('other.pem', otherKey.privateKey)],
    ['a missing certificate', join(files, 'none.pem'), KEY],
    ['a missing key', CERTIFICATE, join(files, 'none.pem')],
    ['a folder', files, KEY],
    ['an empty certificate', file('empty.pem', ''), KEY],
    ['an empty key', CERTIFICATE, file('empty-key.pem', '')],
    ['garbage', file('garbage.pem', 'garbage'), KEY],
    ['a cut certificate', file('cut.pem', certificate.slice(0, 200)), KEY],
    ['key and certificate the other way round', KEY, CERTIFICATE],
  ])('%s', async (_, cert, key) => {
    const error: unknown = await withServer(cert, key, async () => {}).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(StartError)
    expect(error).toMatchObject({ code: 'TLS_INVALID', exitCode: 78 })
    expect(String(error)).not.toContain('BEGIN')
  })
})

test('a port that is taken ends the start with 69', async () => {
  const first = await openTestGatehouse('sqlite', '[server]\nport = 0\n')
  const server = await startServer(first.gatehouse)
  const second = await openTestGatehouse('sqlite', `[server]\nport = ${server.port}\n`)
  const error: unknown = await startServer(second.gatehouse).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'ADDRESS_IN_USE', exitCode: 69 })
  await server.stop()
  await first.close()
  await second.close()
})
