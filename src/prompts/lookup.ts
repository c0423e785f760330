import { eq } from 'drizzle-orm'
import type { Caller } from '../auth/caller.ts'
import type { Tx } from '../db/database.ts'
import { invalidField, notFound } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { findPrompt, findVersion, findVersionByLabel, type PromptRow, type VersionRow } from './store.ts'

/** @throws GatehouseError `not_found`, also for a prompt out of the caller's reach */
export async function getPrompt(read: Gatehouse['read'], caller: Caller, idOrSlug: string): Promise<PromptRow> {
  const prompt = await findPrompt(read, caller, idOrSlug)
  if (prompt === undefined) throw notFound('prompt')
  return prompt
}

/** The prompt and version that a path means: suffix `@N`, `@latest`, `@default`, `@label`, or the query's `version`. */
export async function getPromptVersion(read: Gatehouse['read'], caller: Caller, reference: string, selector?: string) {
  const at = reference.indexOf('@')
  if (at !== -1 && selector !== undefined)
    throw invalidField('version', 'the path names a version already; send one of the two')
  const prompt = await getPrompt(read, caller, at === -1 ? reference : reference.slice(0, at))
  const chosen = at === -1 ? (selector ?? 'default') : reference.slice(at + 1)
  const version = await selectVersion(read, prompt, chosen)
  if (version === undefined) throw notFound('prompt version')
  return { prompt, version }
}

function selectVersion(read: Gatehouse['read'], prompt: PromptRow, selector: string): Promise<VersionRow | undefined> {
  if (selector === 'default') return findVersion(read, prompt.id, prompt.defaultVersion)
  if (selector === 'latest') return findVersion(read, prompt.id, prompt.latestVersion)
  // Nothing beyond the latest is looked for: a number may have any length.
  if (/^\d+$/.test(selector))
    return Number(selector) > prompt.latestVersion
      ? Promise.resolve(undefined)
      : findVersion(read, prompt.id, Number(selector))
  return findVersionByLabel(read, prompt.id, selector)
}

/** Writes go to the prompt, never to one of its versions by suffix. */
export function plainReference(reference: string): string {
  if (reference.includes('@'))
    throw invalidField('promptId', 'must be an id or slug without @ here: versions do not change')
  return reference
}

export async function getVersion(db: Tx, promptId: string, number: number): Promise<VersionRow> {
  const version = await findVersion(db, promptId, number)
  if (version === undefined) throw notFound('prompt version')
  return version
}

export async function getLatestVersion(tx: Tx, promptId: string): Promise<VersionRow> {
  const { prompts } = tx.tables
  const [row] = await tx
    .select({ number: prompts.latestVersion })
    .from(prompts)
    .where(eq(prompts.id, promptId))
    .limit(1)
  return getVersion(tx, promptId, row?.number ?? 0)
}
