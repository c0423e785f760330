import { and, eq, gt, isNotNull, lte, or } from 'drizzle-orm'
import type { Tables } from '../../schema/db/tables.ts'
import { canonicalJson } from '../audit/chain.ts'
import { holdsSecret } from '../audit/mask.ts'
import { open, type SealedPlace, seal } from '../crypto/cipher.ts'
import type { Reader, Tx } from '../db/database.ts'
import { conflict, GatehouseError, invalidField } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import type { Caller } from './caller.ts'
import { permissionsOfOldSecret } from './roles.ts'
import { hasLost } from './still-valid.ts'

/** An answer is given again for this long. */
const ANSWER_MS = 24 * 3_600_000
/** One that holds a clear key or an invite link: long enough for a client that lost its connection. */
const SECRET_MS = 3_600_000

/** A request that a client may send again (decision 8). */
export interface Once {
  /** whether `run` gave an answer of before */
  isReplay: boolean
  /** whether an answer is kept: it is given without a look at what has changed since, as the change is not made again */
  isKnown(): Promise<boolean>
  /**
   * Makes a change and keeps its answer, in the change's own transaction; of several at once, here or on another node,
   * one makes it and the others wait for its end. A change that was made before is not made again: its answer is
   * given, and the audit row becomes one of `….replay`.
   *
   * @param work answers what the route answers
   * @throws GatehouseError `conflict` for another body, and for a secret that is kept no longer; `forbidden` for a
   *                        secret that was made with more than the caller has left
   */
  run<T>(tx: Tx, work: (tx: Tx) => Promise<T>): Promise<T>
}

type Deps = Pick<Gatehouse, 'read' | 'digestKey' | 'keyring'>

/**
 * Reads the Idempotency-Key of a request whose caller and body are proved; undefined without one.
 *
 * @throws GatehouseError `invalid` for a malformed one
 */
export function onceOf(deps: Deps, { request, caller, body }: Sent): Once | undefined {
  const key = request.headers.get('idempotency-key')
  if (key === null) return undefined
  if (!/^[\x21-\x7e]{1,255}$/.test(key))
    throw invalidField('', 'the header Idempotency-Key must be 1 to 255 visible ASCII characters, sent once')
  const { pathname, search } = new URL(request.url, 'http://localhost')
  const digest = (...parts: unknown[]) => deps.digestKey(`idempotency:${canonicalJson(parts)}`)
  const id = digest('request', caller.organisationId, caller.keyId, request.method, pathname, key)
  const bodyDigest = digest('body', search, body ?? {})
  const once: Once = {
    isReplay: false,
    async isKnown() {
      const { idempotentAnswers: t } = deps.read.tables
      const isKept = and(eq(t.id, id), gt(t.createdAt, Date.now() - ANSWER_MS))
      return (await deps.read.select({ id: t.id }).from(t).where(isKept)).length > 0
    },
    async run(tx, work) {
      const { idempotentAnswers: t } = tx.tables
      await tx.delete(t).where(and(eq(t.id, id), isOld(t, tx.now)))
      const row = { id, organisationId: caller.organisationId, bodyDigest, event: '', createdAt: tx.now }
      // On PostgreSQL this waits for the end of whoever inserts the same row.
      const claimed = await tx.insert(t).values(row).onConflictDoNothing().returning({ id: t.id })
      once.isReplay = claimed.length === 0
      if (once.isReplay) return replay(deps, tx, caller, row)
      const made = await work(tx)
      const { action, workspaceId, resourceId, resourceName } = tx.event
      const event = JSON.stringify({ action, workspaceId, resourceId, resourceName })
      const kept = { event, ...columnsOf(deps, caller, row, made) }
      await tx.update(t).set(kept).where(eq(t.id, id)).returning({ id: t.id })
      return made
    },
  }
  return once
}

interface Sent {
  request: Request
  caller: Caller
  body?: unknown
}

type AnswerRow = AnswerTable['$inferSelect']
type Place = Pick<AnswerRow, 'id' | 'organisationId'>

/** What is sealed with a secret: who may not do any more what led to it does not get it again. */
interface SealedAnswer {
  answer: unknown
  rank: Caller['rank']
  permissions: Caller['permissions'] extends ReadonlySet<infer P> ? P[] : never
}

function columnsOf({ keyring }: Deps, { rank, permissions }: Caller, place: Place, answer: unknown) {
  const text = JSON.stringify(answer)
  if (text === undefined) throw new TypeError('the change of a POST must answer what its route answers')
  if (!holdsSecret(answer)) return { answer: text }
  const sealed: SealedAnswer = { answer, rank, permissions: [...permissions] }
  return { sealedAnswer: seal(JSON.stringify(sealed), keyring().dataKey, placeOf(place)) }
}

async function replay<T>(deps: Deps, tx: Tx, caller: Caller, sent: Place & { bodyDigest: string }): Promise<T> {
  const { idempotentAnswers: t } = tx.tables
  const [row] = await tx.select().from(t).where(eq(t.id, sent.id))
  if (row === undefined)
    throw new GatehouseError('stale', 'the answer to this Idempotency-Key has just expired; send the request again')
  if (row.bodyDigest !== sent.bodyDigest)
    throw conflict(
      'this Idempotency-Key was sent with another body or query before; choose a new one for a new request',
    )
  const { action, ...event } = JSON.parse(row.event)
  const dot = action.lastIndexOf('.')
  tx.event = { ...event, action: `${action.slice(0, dot)}.replay`, details: { replayed: action.slice(dot + 1) } }
  if (row.answer !== null) return JSON.parse(row.answer)
  return openAnswer(deps, caller, row, event.resourceId, tx.now) as T
}

function openAnswer(
  { keyring }: Deps,
  caller: Caller,
  row: AnswerRow,
  madeId: string | undefined,
  now: number,
): unknown {
  if (row.sealedAnswer === null || row.createdAt <= now - SECRET_MS)
    throw new GatehouseError(
      'conflict',
      'this request was done; its answer held a secret and is kept no longer. The header x-gatehouse-resource-id names what it made',
      // In a header, since clients search bodies for digits that an id may hold (decision 3).
      { headers: { 'x-gatehouse-resource-id': madeId ?? '' } },
    )
  const { dataKeys } = keyring()
  const text = open(row.sealedAnswer, (id) => dataKeys.get(id), placeOf(row)).toString()
  const { answer, rank, permissions }: SealedAnswer = JSON.parse(text)
  const had = new Set(permissions)
  // A key that rotated itself asks with the secret that this made the old one.
  if (hasLost({ rank, permissions: caller.isPreviousSecret ? permissionsOfOldSecret(had) : had }, caller))
    throw new GatehouseError(
      'forbidden',
      'this API key may do less than when it made the request; the secret stays closed',
    )
  return answer
}

const placeOf = ({ id, organisationId }: Place): SealedPlace => ({
  table: 'idempotent_answers',
  column: 'sealed_answer',
  rowId: id,
  organisationId,
})

/** Whether there is anything for `pruneAnswers`: a look costs no commit. */
export async function hasOldAnswers(read: Reader, now: number): Promise<boolean> {
  const { idempotentAnswers: t } = read.tables
  return (
    (
      await read
        .select({ id: t.id })
        .from(t)
        .where(or(isOld(t, now), isOldSecret(t, now)))
        .limit(1)
    ).length > 0
  )
}

/**
 * Forgets secrets after an hour and answers after a day.
 *
 * @param now UTC milliseconds
 */
export async function pruneAnswers(tx: Tx, now: number): Promise<void> {
  const { idempotentAnswers: t } = tx.tables
  await tx.delete(t).where(isOld(t, now))
  await tx.update(t).set({ sealedAnswer: null }).where(isOldSecret(t, now))
}

type AnswerTable = Tables['idempotentAnswers']
const isOld = (t: AnswerTable, now: number) => lte(t.createdAt, now - ANSWER_MS)
const isOldSecret = (t: AnswerTable, now: number) => and(isNotNull(t.sealedAnswer), lte(t.createdAt, now - SECRET_MS))
