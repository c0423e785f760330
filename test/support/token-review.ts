import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const TLS = join(import.meta.dir, '../http/tls')

export interface ServiceAccount {
  namespace: string
  name: string
}

export interface TokenReviews {
  url: string
  /** PEM: what Vault must trust */
  authority: string
  /** the tokens that were asked about, in order */
  asked: string[]
  stop(): void
}

/** As much of Kubernetes as Vault's login needs: it asks whether a service account's token is valid (TokenReview v1). */
export function startTokenReviews(isValid: (token: string) => boolean = () => true): TokenReviews {
  const authority = readFileSync(join(TLS, 'certificate.pem'), 'utf8')
  const asked: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    tls: { cert: authority, key: readFileSync(join(TLS, 'key.pem')) },
    routes: {
      '/apis/authentication.k8s.io/v1/tokenreviews': async (request) => {
        const { spec } = (await request.json()) as { spec: { token: string } }
        asked.push(spec.token)
        const status = isValid(spec.token) ? { authenticated: true, user: userOf(spec.token) } : { error: 'invalid' }
        return Response.json({ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', status }, { status: 201 })
      },
    },
  })
  return { url: `https://127.0.0.1:${server.port}`, authority, asked, stop: () => void server.stop(true) }
}

const uidOf = ({ namespace, name }: ServiceAccount) => `uid-of-${namespace}-${name}`
const encode = (part: unknown) => Buffer.from(JSON.stringify(part)).toString('base64url')

/** A projected token with a signature of nobody: only the review tells whether it holds. */
export function serviceAccountToken(account: ServiceAccount): string {
  const { namespace, name } = account
  const now = Math.floor(Date.now() / 1_000)
  const claims = {
    iss: 'https://kubernetes.default.svc',
    sub: `system:serviceaccount:${namespace}:${name}`,
    nbf: now - 60,
    exp: now + 3_600,
    'kubernetes.io': { namespace, serviceaccount: { name, uid: uidOf(account) } },
  }
  return `${encode({ alg: 'RS256', typ: 'JWT' })}.${encode(claims)}.${encode('signature')}`
}

function userOf(token: string): object {
  const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  const account: ServiceAccount = { ...claims['kubernetes.io'], name: claims['kubernetes.io'].serviceaccount.name }
  return { username: claims.sub, uid: uidOf(account), groups: ['system:serviceaccounts'] }
}
