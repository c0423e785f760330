import { describe, expect, test } from 'bun:test'
import { createLookup, type Thing } from '../src/secret-references/lookup.ts'

const ID = '0190b8c4-0000-7000-8000-00000000000'
const thing = (n: number, slug = `slug-${n}`): Thing => ({ id: `${ID}${n}`, slug, organisationId: 'o' })

/** A lookup over things that can be changed, whose reads end when they are let go. */
function open(max = 10) {
  const stored = new Map<string, Thing>()
  let gate = Promise.resolve()
  let reads = 0
  const lookup = createLookup<Thing>(max, async (organisationId, idOrSlug) => {
    reads++
    const found = [...stored.values()].find(
      ({ id, slug, ...of }) => of.organisationId === organisationId && (id === idOrSlug || slug === idOrSlug),
    )
    await gate
    return found && { ...found }
  })
  return {
    ...{ lookup, stored },
    reads: () => reads,
    put: (each: Thing) => void stored.set(each.id, each),
    /** @returns lets the reads from now on go */
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>()
      gate = promise
      return () => {
        gate = Promise.resolve()
        resolve()
      }
    },
  }
}

describe('what is looked up', () => {
  test('is read once, for all who ask at the time and after it, under either name: one object', async () => {
    const { lookup, put, reads } = open()
    put(thing(1))
    const [a, b] = await Promise.all([lookup.load('o', `${ID}1`), lookup.load('o', `${ID}1`)])
    expect(reads()).toBe(1)
    expect(b).toBe(a!)
    expect(lookup.find('o', 'slug-1')).toBe(a!)
    expect(await lookup.load('o', 'slug-1')).toBe(a!)
    expect(reads()).toBe(1)
  })

  test('read under both names at once, is one object all the same', async () => {
    const { lookup, put } = open()
    put(thing(1))
    const [a, b] = await Promise.all([lookup.load('o', `${ID}1`), lookup.load('o', 'slug-1')])
    expect(b).toBe(a!)
  })

  test('is that of its organisation', async () => {
    const { lookup, put } = open()
    put(thing(1))
    await lookup.load('o', 'slug-1')
    expect(lookup.find('other', 'slug-1')).toBeUndefined()
    expect(lookup.find('other', `${ID}1`)).toBeUndefined()
    expect(await lookup.load('other', `${ID}1`)).toBeUndefined()
  })

  test('is not remembered to be missing', async () => {
    const { lookup, put } = open()
    expect(await lookup.load('o', 'slug-1')).toBeUndefined()
    put(thing(1))
    expect(await lookup.load('o', 'slug-1')).toMatchObject({ id: `${ID}1` })
  })

  test.each(['drop', 'clear'] as const)('and changed meanwhile is not kept as it was: %s', async (how) => {
    const { lookup, put, hold } = open()
    put(thing(1, 'before'))
    const letGo = hold()
    const early = lookup.load('o', `${ID}1`)
    put(thing(1, 'after'))
    if (how === 'drop') lookup.drop(`${ID}1`)
    else lookup.clear()
    const late = lookup.load('o', `${ID}1`)
    letGo()
    expect(await early).toMatchObject({ slug: 'before' })
    expect(await late, 'who asks after the change').toMatchObject({ slug: 'after' })
    expect(lookup.find('o', `${ID}1`)).toMatchObject({ slug: 'after' })
    expect(lookup.find('o', 'before')).toBeUndefined()
  })

  test('and dropped is gone under both names, and nothing else is', async () => {
    const { lookup, put } = open()
    put(thing(1))
    put(thing(2))
    await Promise.all([lookup.load('o', 'slug-1'), lookup.load('o', 'slug-2')])
    lookup.drop(`${ID}1`)
    expect(lookup.find('o', `${ID}1`) ?? lookup.find('o', 'slug-1')).toBeUndefined()
    expect(lookup.find('o', 'slug-2')).toBeDefined()
  })

  test('is bounded: what was used last stays', async () => {
    const { lookup, put } = open(2)
    for (const n of [1, 2, 3]) put(thing(n))
    await lookup.load('o', 'slug-1')
    await lookup.load('o', 'slug-2')
    lookup.find('o', `${ID}1`)
    await lookup.load('o', 'slug-3')
    const isHeld = [1, 2, 3].map((n) => lookup.find('o', `slug-${n}`) !== undefined)
    expect(isHeld).toEqual([true, false, true])
    expect(lookup.find('o', `${ID}2`)).toBeUndefined()
  })

  test('is never found by a slug that is the id of another', async () => {
    const { lookup, put } = open()
    put(thing(1, `${ID}2`))
    put(thing(2))
    await lookup.load('o', `${ID}1`)
    expect(lookup.find('o', `${ID}2`)).toBeUndefined()
  })

  test('a read that fails is tried again', async () => {
    let fails = true
    const lookup = createLookup<Thing>(2, async () => {
      if (fails) throw new Error('storage')
      return thing(1)
    })
    await expect(lookup.load('o', 'slug-1')).rejects.toThrow('storage')
    fails = false
    expect(await lookup.load('o', 'slug-1')).toBeDefined()
  })
})
