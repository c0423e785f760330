import { isIPv6 } from 'node:net'
import type { Caller, RequestInfo } from '../auth/caller.ts'
import type { AuditKeys } from './keys.ts'
import { maskingFor, ofRequest, type UnplacedRow } from './row.ts'
import { createTallies, type TalliesOptions } from './tallies.ts'

/** Tuples a minute that get rows of their own; what comes after them is one row together (decision 39). */
const TUPLES_A_MINUTE = 60

/** A request that was answered with 4xx or 5xx. */
export interface Refusal {
  /** whom the key proves, or whom it proved; with the reason, where it was refused itself */
  caller: Accountable | undefined
  /** a key was sent, and it is none of ours: all of these count as one, whatever they ask for */
  isKeyUnknown: boolean
  clientIp: string | null
  method: string
  /** template of the route, if one matched: paths are the client's to choose */
  route: string | undefined
  /** what was asked for, as the row of its success would say it: `prompts.create` */
  action: string | undefined
  /** what it was asked of, as the path names it */
  resourceId: string | null
  status: number
  /** `error.type` of the answer */
  type: string
  /** where a secret manager failed */
  step?: string | undefined
  /** with its body, if that may be kept; asked for only when the refusal gets a row of its own */
  request: () => RequestInfo
}

type Accountable = Pick<Caller, 'keyId' | 'type' | 'organisationId' | 'workspaceId' | 'accountableUserId'> & {
  reason?: string
}

export interface Refusals {
  /**
   * Counts a refusal, and starts to write its row if it is the first of its kind in this minute. Never throws.
   *
   * @returns what has become of the row, if there is one; undefined: it is counted
   */
  note(refusal: Refusal): Promise<{ isStored: boolean }> | undefined
  /** The same for one whose key is still looked for: it counts when the promise resolves, which must not reject. */
  noteWhenFound(refusal: Promise<Refusal>): void
  /** Writes what was counted, and resolves when every row is stored or given up; at shutdown. */
  flush(): Promise<void>
}

/**
 * The rows of refused requests: few, whatever arrives. The first of a kind in a minute is a row at once; the others are
 * counted in memory, and their count is a row at the minute's end. The sum of all counts is the number of requests.
 *
 * @param options.keys           for fingerprints of secrets in bodies; there are some as soon as there is an organisation
 * @param options.organisationId of the installation, for callers that are unknown; undefined before bootstrap
 */
export function createRefusals(
  options: TalliesOptions & {
    keys(): Pick<AuditKeys, 'fingerprint'>
    organisationId(): string | undefined
  },
): Refusals {
  const { keys, organisationId } = options
  const tallies = createTallies(options)
  const looking = new Set<Promise<void>>()

  /** The first of its kind, with the request itself. */
  function writeFirst(kind: string, row: UnplacedRow, { request, resourceId }: Refusal) {
    const asked = ofRequest(request(), maskingFor(keys(), row.resource_type, resourceId))
    return tallies.writeFirst(kind, {
      ...row,
      ...asked,
      resource_id: resourceId,
      details: { ...row.details, count: 1 },
    })
  }

  /** What gets no row at once, only one at the minute's end. */
  const countTogether = (kind: string, row: UnplacedRow): void =>
    tallies.count(tallies.find(kind) ?? tallies.begin(kind, () => row))

  function note(refusal: Refusal): Promise<{ isStored: boolean }> | undefined {
    const organisation = refusal.caller?.organisationId ?? organisationId()
    if (organisation === undefined) return undefined
    const network = networkOf(refusal.clientIp)
    const kind = kindOf(refusal, network)
    const known = tallies.find(kind)
    if (known !== undefined) tallies.count(known)
    else if (tallies.size() >= TUPLES_A_MINUTE) countTogether(OVERFLOW, overflowRow(organisation))
    else if (refusal.isKeyUnknown) countTogether(kind, strangersRow(organisation))
    else {
      const row = rowOf(refusal, organisation, network)
      tallies.begin(kind, () => row)
      return writeFirst(kind, row, refusal)
    }
    return undefined
  }

  return {
    note,
    noteWhenFound(refusal) {
      const noted = refusal.then((found) => void note(found)).finally(() => looking.delete(noted))
      looking.add(noted)
    },
    async flush() {
      await Promise.all(looking)
      await tallies.flush()
    },
  }
}

const OVERFLOW = 'overflow'

const kindOf = ({ caller, isKeyUnknown, method, route, action, status, type }: Refusal, network: string): string =>
  isKeyUnknown
    ? 'unknown keys'
    : [caller?.keyId ?? '', caller?.reason ?? '', network, method, route ?? '', action ?? '', status, type].join(' ')

function rowOf(refusal: Refusal, organisationId: string, network: string): UnplacedRow {
  const { caller, action = 'requests.refuse', route, method, status, type, step } = refusal
  const dot = action.lastIndexOf('.')
  return {
    ...blankRow(organisationId),
    workspace_id: caller?.workspaceId ?? null,
    ...(caller && { user_id: caller.keyId, accountable_user_id: caller.accountableUserId }),
    ...(caller?.type === 'system' && { user_type: 'system' }),
    resource_type: action.slice(0, dot),
    action: action.slice(dot + 1),
    method,
    client_ip: network,
    response_status_code: status,
    details: {
      error: type,
      ...(step && { step }),
      ...(caller?.reason && { reason: caller.reason }),
      ...(route && { route }),
    },
  }
}

const strangersRow = (organisationId: string): UnplacedRow => ({
  ...blankRow(organisationId),
  response_status_code: 401,
  details: { error: 'authentication_error', summary: 'API keys that are not known here' },
})

const overflowRow = (organisationId: string): UnplacedRow => ({
  ...blankRow(organisationId),
  details: { summary: `refusals of this minute beyond the first ${TUPLES_A_MINUTE} kinds` },
})

const blankRow = (organisationId: string): UnplacedRow => ({
  organisation_id: organisationId,
  workspace_id: null,
  user_type: 'api_key',
  user_id: 'anonymous',
  accountable_user_id: null,
  resource_type: 'requests',
  action: 'refuse',
  resource_id: null,
  resource_name: null,
  method: null,
  uri: null,
  request_id: null,
  client_ip: null,
  request_headers: {},
  query_params: {},
  request_body: {},
  response_status_code: 400,
  details: {},
})

/** The /24 or /64 that an address is in, since one attacker has many of them; '' when it is unknown. */
export function networkOf(address: string | null): string {
  if (address === null) return ''
  if (!isIPv6(address)) return `${address.slice(0, address.lastIndexOf('.'))}.0/24`
  const [head = '', tail] = address.split('::')
  const groups = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  if (tail !== undefined) while (groups.length + after.length < 8) groups.push('0')
  const network = [...groups, ...after].slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16))
  return `${network.join(':')}::/64`
}
