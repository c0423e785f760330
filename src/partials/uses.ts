import type { Reader } from '../db/database.ts'
import { checkPartial, compileTemplate, type FindPartial, type TemplateKind } from '../templates/template.ts'
import { listPartialTexts, listPublishedUses, type PartialRow } from './store.ts'

/**
 * Slugs of the prompts whose default or a labelled version uses the partial, directly or through other partials
 * (decision 26).
 *
 * @param findPartial the partials of the workspace as they are now
 */
export async function promptsUsingPartial(
  db: Reader,
  partial: PartialRow,
  findPartial: FindPartial,
): Promise<string[]> {
  const names = await includers(db, partial)
  const candidates = await listPublishedUses(db, partial.workspaceId, names)
  // What includes it in some version need not include it in the one that a prompt takes: compiling tells.
  const uses = candidates.filter(({ template, templateType, isRaw }) =>
    mayUse(() => compileTemplate(template, isRaw, templateType as TemplateKind, findPartial).partials, partial.slug),
  )
  return [...new Set(uses.map(({ slug }) => slug))]
}

/** Ids and slugs of the partial and of all partials of which some version leads to it. */
async function includers(db: Reader, { id, slug, workspaceId }: PartialRow): Promise<string[]> {
  const texts = (await listPartialTexts(db, workspaceId)).map((row) => ({ ...row, names: namesIn(row.text) }))
  const found = new Set([id, slug])
  for (let before = 0; before < found.size; ) {
    before = found.size
    for (const row of texts) if (row.names.some((name) => found.has(name))) found.add(row.id).add(row.slug)
  }
  return [...found]
}

const namesIn = (text: string): string[] =>
  checkPartial(text).partials.map((reference) => reference.split('@', 1)[0] ?? '')

/** A template that does not compile is broken already, but not by losing this partial. */
function mayUse(partialsOf: () => { slug: string }[], slug: string): boolean {
  try {
    return partialsOf().some((each) => each.slug === slug)
  } catch {
    return false
  }
}
