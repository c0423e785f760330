import type { Bootstrapped } from '../../src/organisation/bootstrap.ts'
import type { Answer } from './gatehouse.ts'
import { type Sent, send } from './servers.ts'

/** What the clients were told, kept outside of the servers. */
export interface Ledger {
  labels: string[]
  versions: string[]
  /** clear keys by id */
  keys: Map<string, string>
  /** ids of those that were deleted */
  revoked: string[]
  /** sent, but the answer never came; may be sent again */
  unanswered: Request[]
}

interface Request {
  sent: Sent
  note(body: Answer['body']): void
  /** statuses of an answer when it is sent again */
  again: number[]
}

export interface Writers {
  ledger: Ledger
  /** one client: a change after the other, until it is told to stop or the server is gone */
  write(url: string, isOver: () => boolean): Promise<void>
  /** sends again what was not answered; each must be answered as if it were sent once */
  settle(url: string): Promise<void>
}

/** So many keys stay alive, to be seen so. */
const KEPT = 3

/** Clients that make labels, versions of a prompt and keys, and revoke keys; each POST with an Idempotency-Key. */
export function createWriters({ admin_key: admin, workspace_id: workspace }: Bootstrapped, promptId: string): Writers {
  const ledger: Ledger = { labels: [], versions: [], keys: new Map(), revoked: [], unanswered: [] }
  /** ids of keys that nobody has set out to revoke, oldest first */
  const live: string[] = []

  const create = (path: string, body: object, note: Request['note']): Request => ({
    sent: { method: 'POST', path, body, key: admin, headers: { 'idempotency-key': crypto.randomUUID() } },
    note,
    again: [200],
  })
  const newLabel = (): Request =>
    create('/v1/labels', { name: crypto.randomUUID() }, ({ id }) => void ledger.labels.push(id))
  const newKey = (): Request =>
    create(
      '/v1/api-keys/workspace/service',
      { name: 'of a writer', workspace_id: workspace, scopes: ['prompts.list'] },
      ({ id, key }) => {
        ledger.keys.set(id, key)
        live.push(id)
      },
    )
  // Sent again it would be one more version, so it is not.
  const newVersion = (): Request => ({
    sent: { method: 'PUT', path: `/v1/prompts/${promptId}`, body: promptVersion(crypto.randomUUID()), key: admin },
    note: ({ prompt_version_id: id }) => void ledger.versions.push(id),
    again: [],
  })
  const revocation = (id: string): Request => ({
    sent: { method: 'DELETE', path: `/v1/api-keys/${id}`, key: admin },
    note: () => void ledger.revoked.push(id),
    again: [200, 404],
  })

  async function perform(url: string, request: Request, expected: number[]): Promise<boolean> {
    const answer = await send(url, request.sent).catch(() => undefined)
    if (answer === undefined) {
      if (request.again.length > 0) ledger.unanswered.push(request)
      return false
    }
    if (!expected.includes(answer.status)) throw new Error(`${request.sent.path}: ${answer.text}`)
    request.note(answer.body)
    return true
  }

  return {
    ledger,
    async write(url, isOver) {
      const revoke = () => (live.length > KEPT ? revocation(live.shift()!) : newKey())
      const kinds = [newLabel, newVersion, newKey, revoke]
      for (let i = Math.floor(Math.random() * kinds.length); !isOver(); i++)
        if (!(await perform(url, kinds[i % kinds.length]!(), [200]))) return
    },
    async settle(url) {
      const unanswered = ledger.unanswered.splice(0)
      const answered = await Promise.all(unanswered.map((request) => perform(url, request, request.again)))
      if (answered.includes(false)) throw new Error('no answer although nobody was killed')
    },
  }
}

/** A whole version of a prompt, as POST and PUT take it. */
export const promptVersion = (text: string) => ({
  string: JSON.stringify([{ role: 'user', content: text }]),
  parameters: {},
  model: 'gpt-4o-mini',
  virtual_key: 'openai',
})
