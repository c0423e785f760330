export interface Thing {
  id: string
  slug: string
  organisationId: string
}

/** Things by id and by slug, read when they are first asked for; a bounded number of them, those used last. */
export interface Lookup<T extends Thing> {
  /** what is held under a name; no promise, for those who ask often */
  find(organisationId: string, idOrSlug: string): T | undefined
  /** The same, read where it is not held, once for all who ask at that time. */
  load(organisationId: string, idOrSlug: string): Promise<T | undefined>
  /** Forgets one; what is being read just then is handed out, and not kept. */
  drop(id: string): void
  clear(): void
}

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i

/** What looks like an id is one, whatever slugs there are. */
export const isId = (name: string): boolean => UUID.test(name)

export function createLookup<T extends Thing>(
  max: number,
  read: (organisationId: string, idOrSlug: string) => Promise<T | undefined>,
): Lookup<T> {
  const byName = new Map<string, T>()
  /** least recently used first */
  const byId = new Map<string, T>()
  let reading = new Map<string, Promise<T | undefined>>()

  function forget(thing: T): void {
    byId.delete(thing.id)
    for (const key of keysOf(thing)) byName.delete(key)
  }

  function keep(thing: T): T {
    // Read under its other name at the same time: there is one object of each.
    const known = byId.get(thing.id)
    if (known !== undefined) return known
    byId.set(thing.id, thing)
    for (const key of keysOf(thing)) byName.set(key, thing)
    for (const oldest of byId.values()) {
      if (byId.size <= max) break
      forget(oldest)
    }
    return thing
  }

  function find(organisationId: string, idOrSlug: string): T | undefined {
    const thing = byName.get(keyOf(organisationId, idOrSlug))
    if (thing === undefined) return undefined
    byId.delete(thing.id)
    byId.set(thing.id, thing)
    return thing
  }

  return {
    find,
    async load(organisationId, idOrSlug) {
      const held = find(organisationId, idOrSlug)
      if (held !== undefined) return held
      const key = keyOf(organisationId, idOrSlug)
      const underWay = reading.get(key)
      if (underWay !== undefined) return underWay
      const own = reading
      const found = read(organisationId, idOrSlug)
        .then((thing) => (thing === undefined || own !== reading ? thing : keep(thing)))
        .finally(() => own.delete(key))
      own.set(key, found)
      return found
    },
    drop(id) {
      // Who asks from now on gets nothing that was read before.
      reading = new Map()
      const thing = byId.get(id)
      if (thing !== undefined) forget(thing)
    },
    clear() {
      reading = new Map()
      byId.clear()
      byName.clear()
    },
  }
}

const keyOf = (organisationId: string, name: string): string => `${organisationId} ${name}`

const keysOf = ({ id, slug, organisationId }: Thing): string[] =>
  (isId(slug) ? [id] : [id, slug]).map((name) => keyOf(organisationId, name))
