import type { Permission } from '../../schema/api/permissions.ts'
import { GatehouseError } from '../errors.ts'
import type { Caller, KeyType } from './caller.ts'
import { type Person, RANKS, type Rank, rankOf } from './roles.ts'

/**
 * Whom the ceiling binds (decision 31): a caller, or on the acceptance of an invite the person who answers for it, with
 * the rights that they have then.
 */
export type Minter = Pick<Caller, 'type' | 'permissions' | 'rank' | 'accountableUserId' | 'expiresAt'>

/** A key as it will be. */
export interface Minted {
  type: KeyType
  scopes: readonly Permission[]
  /** UTC milliseconds, or null */
  expiresAt: number | null
  /** the person a user key acts as; null for all other types, which act as nobody */
  person: (Person & { id: string }) | null
}

/**
 * Nobody makes what is more than they are: asked before a key is created or rotated, and before a change of it gives
 * more scopes, a longer life or wider limits (decision 31). A key that rotates itself is not asked.
 *
 * @param isBound whether the minter's own expiry binds the key; its limits are `api-keys/minting.ts`'s to compare
 * @throws GatehouseError `forbidden`
 */
export function assertMayMint(minter: Minter, minted: Minted, isBound = isLikeItself(minter, minted)): void {
  assertMayGive(minter, minted.scopes)
  if (isBound) assertMayLast(minter, minted)
  assertMayMintFor(minter, minted.person)
}

/**
 * Every scope is one that the minter may use itself, or one of the data plane while it manages the workspace.
 *
 * @throws GatehouseError `forbidden`
 */
export function assertMayGive(minter: Minter, scopes: readonly Permission[]): void {
  const beyond = scopes.filter((scope) => !mayGive(minter, scope))
  if (beyond.length > 0)
    throw forbidden(`this API key may not give scopes that it does not hold itself: ${beyond.join(', ')}`)
}

export const mayGive = ({ permissions, rank }: Minter, scope: Permission): boolean =>
  permissions.has(scope) || (DATA_PLANE.has(scope) && !ranksAbove('manager', rank))

/** Scopes that an admin key may give although it can hold none of them. */
const DATA_PLANE: ReadonlySet<Permission> = new Set([
  'completions.write',
  'logs.write',
  'guardrails.invoke',
  'mcp.invoke',
  'agents.invoke',
])

/** A key that ends, or has limits, mints none of its own type for its own person that has more, itself included. */
export const isLikeItself = ({ type, accountableUserId }: Minter, minted: Minted): boolean =>
  minted.type === type && (minted.person?.id ?? accountableUserId) === accountableUserId

function assertMayLast({ expiresAt }: Minter, minted: Minted): void {
  if (expiresAt === null) return
  if (minted.expiresAt === null || minted.expiresAt > expiresAt)
    throw forbidden('this API key expires, so expires_at must not be later than its own')
}

function assertMayMintFor({ rank, accountableUserId }: Minter, person: Minted['person']): void {
  if (person === null || person.id === accountableUserId) return
  if (ranksAbove(rankOf(person), rank)) throw forbidden('user_id names a person above the role of this API key')
  // A member's self-service (decision 34) ends at the member.
  if (ranksAbove('manager', rank)) throw forbidden('this API key may make user keys for its own person only')
}

/**
 * Whether a key lies within what the caller may see and touch of its workspace's keys: a member's self-service covers
 * the member's own user keys.
 */
export const mayTouchKeyOf = (caller: Caller, userId: string | null): boolean =>
  !ranksAbove('manager', caller.rank) || (userId !== null && userId === caller.userId)

/**
 * For the removal of a person, and for a new organisation role (decision 32): not above the caller's own, for nobody
 * above the caller, and never for oneself. Owners are made by `gatehouse owner transfer` alone.
 *
 * @param role the new organisation role; null: the person is removed
 * @throws GatehouseError `forbidden`
 */
export function assertNoUpwardMove(
  caller: Pick<Caller, 'rank' | 'accountableUserId'>,
  person: { id: string; organisationRole: Person['organisationRole'] },
  role: Person['organisationRole'] | null,
): void {
  const rank = rankInOrganisation(person.organisationRole)
  if (ranksAbove(rank, caller.rank)) throw forbidden('this person stands above the role of this API key')
  if (role === null) return
  if (person.id === caller.accountableUserId) throw forbidden('nobody changes their own role')
  if (ranksAbove(rankInOrganisation(role), caller.rank)) throw forbidden('role is above the role of this API key')
}

const rankInOrganisation = (organisationRole: Person['organisationRole']): Rank =>
  rankOf({ organisationRole, workspaceRole: null })

export const ranksAbove = (one: Rank, other: Rank): boolean => RANKS.indexOf(one) > RANKS.indexOf(other)

const forbidden = (message: string): GatehouseError => new GatehouseError('forbidden', message)
