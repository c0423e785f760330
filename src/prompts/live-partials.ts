import { eq } from 'drizzle-orm'
import type { Tables } from '../../schema/db/tables.ts'
import type { Reader } from '../db/database.ts'
import type { FindPartial } from '../templates/template.ts'

/** Every text of every partial, in memory: a template may name any version, and compiling awaits nothing. */
export interface LivePartials {
  /** the partials of one workspace, by `slug`, `id`, `slug@N`, `slug@latest` */
  inWorkspace(workspaceId: string): FindPartial
  count(): number
  load(): Promise<void>
  /** answers the slug that templates may name it by; undefined when it is unknown before and after */
  reload(id: string): Promise<string | undefined>
}

interface LivePartial {
  id: string
  slug: string
  workspaceId: string
  defaultVersion: number
  latestVersion: number
  versions: { id: string; number: number; text: string }[]
}

export function createLivePartials(read: Reader): LivePartials {
  const partials = new Map<string, LivePartial>()
  const t = read.tables

  function put(row: Tables['partials']['$inferSelect'], versions: Tables['partialVersions']['$inferSelect'][]): void {
    const { id, slug, workspaceId, defaultVersion, latestVersion } = row
    const texts = versions.map((version) => ({ id: version.id, number: version.number, text: version.template }))
    const partial = { id, slug, workspaceId, defaultVersion, latestVersion, versions: texts }
    partials.set(id, partial)
    partials.set(slug, partial)
  }

  return {
    inWorkspace: (workspaceId) => (reference) => {
      const at = reference.indexOf('@')
      const partial = partials.get(at === -1 ? reference : reference.slice(0, at))
      if (partial === undefined || partial.workspaceId !== workspaceId) return undefined
      const number = numberOf(partial, at === -1 ? 'default' : reference.slice(at + 1))
      const version = partial.versions.find((each) => each.number === number)
      return (
        version && { id: partial.id, slug: partial.slug, version: number, versionId: version.id, text: version.text }
      )
    },
    count: () => partials.size / 2,
    async load() {
      const [rows, versions] = await Promise.all([
        read.select().from(t.partials),
        read.select().from(t.partialVersions),
      ])
      const byPartial = Map.groupBy(versions, (version) => version.partialId)
      partials.clear()
      for (const row of rows) put(row, byPartial.get(row.id) ?? [])
    },
    async reload(id) {
      const [[row], versions] = await Promise.all([
        read.select().from(t.partials).where(eq(t.partials.id, id)),
        read.select().from(t.partialVersions).where(eq(t.partialVersions.partialId, id)),
      ])
      const before = partials.get(id)
      if (before !== undefined) for (const name of [before.id, before.slug]) partials.delete(name)
      if (row !== undefined) put(row, versions)
      return row?.slug ?? before?.slug
    },
  }
}

function numberOf({ defaultVersion, latestVersion }: LivePartial, selector: string): number {
  if (selector === 'default') return defaultVersion
  return selector === 'latest' ? latestVersion : Number(selector)
}
