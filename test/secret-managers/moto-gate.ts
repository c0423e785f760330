import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts'
import type { AccessKey, MotoServer, Statement } from '../support/moto.ts'
import { type CannedAnswer, refused, refusedInXml } from './aws-double.ts'

/** Credentials of a role, as a container gets them. */
export interface Session {
  /** of who is logged in */
  arn: string
  answer: object
}

/** Of a new role, which the starter may assume. */
export async function lend(
  moto: MotoServer,
  starter: AccessKey,
  role: string,
  ...policies: Statement[]
): Promise<Session> {
  const arn = await moto.createRole(role, { principal: starter.arn }, ...policies)
  const sts = new STSClient({ endpoint: moto.url, region: 'us-east-1', credentials: starter })
  const { Credentials, AssumedRoleUser } = await sts.send(
    new AssumeRoleCommand({ RoleArn: arn, RoleSessionName: 'session' }),
  )
  const { AccessKeyId, SecretAccessKey, SessionToken: Token, Expiration } = Credentials!
  return { arn: AssumedRoleUser!.Arn!, answer: { AccessKeyId, SecretAccessKey, Token, Expiration } }
}

export const TASK = 'GET /task/credentials'
export const TASK_TOKEN = 'token-of-the-task'
export const FEDERATED = 'AssumeRoleWithWebIdentity'

/** What stands before moto: notes who logs in, and is the endpoint of a container as well. */
export function startMotoGate(moto: MotoServer, task: Session) {
  const logins: string[] = []
  let hasExpired = false
  const gate = {
    logins,
    port: 0,
    task,
    /** a login that does not work */
    refused: '',
    /** moto's sessions never end: the next read is refused as AWS would */
    async revoke() {
      hasExpired = true
    },
    stop: () => void server.stop(true),
  }

  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const body = await request.text()
      const name = nameOf(request, body)
      if (name !== undefined) logins.push(name)
      if (name === TASK) {
        const isIt = request.headers.get('authorization') === TASK_TOKEN && gate.refused !== TASK
        return isIt ? Response.json(gate.task.answer) : Response.json({ message: 'no' }, { status: 403 })
      }
      if (name === undefined && hasExpired) {
        hasExpired = false
        return canned(refused('ExpiredTokenException', 'The security token included in the request is expired'))
      }
      if (name !== FEDERATED) return passOn(request, body)
      if (gate.refused === FEDERATED)
        return canned(refusedInXml('InvalidIdentityToken', 'No OpenIDConnect provider found', 400))
      return unsigned(() => passOn(request, body))
    },
  })
  gate.port = server.port ?? 0

  let last: Promise<unknown> = Promise.resolve()
  /** Where moto enforces policies, it expects a signature of every request: those without one go in turn, one at a time. */
  function unsigned(work: () => Promise<Response>): Promise<Response> {
    const answered = last.then(async () => {
      await moto.enforcePolicies(false)
      return work().finally(() => moto.enforcePolicies(true))
    })
    last = answered.catch(() => {})
    return answered
  }

  function passOn({ url, method, headers }: Request, body: string): Promise<Response> {
    const { pathname } = new URL(url)
    return fetch(`${moto.url}${pathname}`, { method, headers, ...(body !== '' && { body }) })
  }
  return gate
}

const canned = ({ status, body }: CannedAnswer): Response =>
  typeof body === 'string' ? new Response(body, { status }) : Response.json(body, { status })

/** A login: the action, or method and path; a read that is signed with a key of a user; undefined for other reads. */
function nameOf({ method, url, headers }: Request, body: string): string | undefined {
  const [, key = ''] = /Credential=([^/]+)\//.exec(headers.get('authorization') ?? '') ?? []
  if (headers.has('x-amz-target')) return key.startsWith('AKIA') ? `key ${key}` : undefined
  return new URLSearchParams(body).get('Action') ?? `${method} ${new URL(url).pathname}`
}

export type MotoGate = ReturnType<typeof startMotoGate>
