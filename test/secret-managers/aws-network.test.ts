import { afterAll, describe, expect, test } from 'bun:test'
import { createServer, type Socket } from 'node:net'
import type { AwsAuthConfig } from '../../schema/api/secret-references.ts'
import { createOutbound } from '../../src/outbound/outbound.ts'
import type { ManagerFailure, Step } from '../../src/secret-managers/manager.ts'
import { startTlsFront } from '../support/tls-front.ts'
import { ACCESS_KEY, ASSUMED_ROLE, IMDS, openAws, SERVICE_ROLE } from './aws-double.ts'

// What lies between AWS and us, over our one transport: each failure is told within the deadline, at the step where it was.

const closing: (() => void)[] = []
afterAll(() => {
  for (const close of closing) close()
})

/** Answers whatever it is sent with this text; not at all without one. */
async function startRaw(answer?: string): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', () => answer !== undefined && socket.end(answer))
  })
  closing.push(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const { promise, resolve } = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', resolve)
  await promise
  return (server.address() as { port: number }).port
}

const SECRETS = 'secretsmanager.eu-west-1.amazonaws.com'
const STS = 'sts.eu-west-1.amazonaws.com'
const METADATA = '169.254.169.254:80'
const page = (status: string, headers = '') => `HTTP/1.1 ${status}\r\n${headers}content-length: 0\r\n\r\n`

const [silent, cutOff, redirecting] = await Promise.all([
  startRaw(),
  startRaw('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"SecretString":'),
  startRaw(page('307 Temporary Redirect', 'location: http://169.254.169.254/\r\n')),
])
const before = async (to: number) => {
  const front = await startTlsFront({ names: [SECRETS, STS], to })
  closing.push(() => front.stop())
  return front
}
const [silentAws, cutOffAws, redirectingAws] = await Promise.all([before(silent), before(cutOff), before(redirecting)])

/** The metadata service as far as a login goes. */
const metadata = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch({ url }) {
    if (!url.includes('security-credentials')) return new Response('token')
    if (url.endsWith('/')) return new Response('role')
    const Expiration = new Date(Date.now() + 3_600_000).toISOString()
    return Response.json({ AccessKeyId: 'ASIA', SecretAccessKey: 'secret', Token: 'token', Expiration })
  },
})
closing.push(() => void metadata.stop(true))

const REFUSING = 1
const DEADLINE_MS = 300

interface Way {
  /** ports of this machine, by what they stand for */
  to: Record<string, number>
  ca?: string
}

describe('a call ends within its deadline', () => {
  const aws = ({ port, ca }: { port: number; ca: string }): Way => ({
    to: { [`${SECRETS}:443`]: port, [`${STS}:443`]: port, [METADATA]: metadata.port ?? 0 },
    ca,
  })
  const host = (port: number): Way => ({ to: { [METADATA]: port } })
  test.each<[what: string, AwsAuthConfig, Way, Step, ManagerFailure]>([
    ['AWS never answers', ACCESS_KEY, aws(silentAws), 'read', 'manager_timeout'],
    ['STS never answers', ASSUMED_ROLE, aws(silentAws), 'login', 'manager_timeout'],
    ['AWS never speaks TLS', ACCESS_KEY, aws({ ...silentAws, port: silent }), 'tls', 'manager_timeout'],
    ['AWS is not there', ACCESS_KEY, aws({ ...silentAws, port: REFUSING }), 'connect', 'manager_unreachable'],
    [
      'AWS shows the certificate of a stranger',
      ACCESS_KEY,
      aws({ ...silentAws, ca: cutOffAws.ca }),
      'tls',
      'manager_tls',
    ],
    ['the answer of AWS is cut off', ACCESS_KEY, aws(cutOffAws), 'read', 'manager_bad_response'],
    ['the answer of STS is cut off', ASSUMED_ROLE, aws(cutOffAws), 'login', 'manager_bad_response'],
    ['AWS redirects', ACCESS_KEY, aws(redirectingAws), 'read', 'manager_bad_response'],
    ['the metadata service never answers', SERVICE_ROLE, host(silent), 'login', 'manager_timeout'],
    ['there is no metadata service', SERVICE_ROLE, host(REFUSING), 'connect', 'manager_unreachable'],
    ['the metadata service cuts its answer off', SERVICE_ROLE, host(cutOff), 'login', 'manager_bad_response'],
    ['the metadata service redirects', SERVICE_ROLE, host(redirecting), 'login', 'manager_bad_response'],
  ])('where %s', async (_what, authConfig, { to, ca }, step, failure) => {
    const connect = Object.fromEntries(Object.entries(to).map(([from, port]) => [from, `127.0.0.1:${port}`]))
    const config = { allow: [], allow_http: [], connect, proxy: '' }
    const transport = createOutbound({ config, ownListeners: () => [] }).open({ ca })
    const begun = performance.now()
    const error = await openAws(authConfig, transport, IMDS).failure(undefined, AbortSignal.timeout(DEADLINE_MS))
    expect({ step: error.step, failure: error.failure }).toEqual({ step, failure })
    expect(error.message).not.toMatch(/404|not found/i)
    expect(performance.now() - begun).toBeLessThan(DEADLINE_MS + 1_000)
    transport.close()
  })
})
