import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { pickField } from '../../src/secret-managers/field.ts'
import { type FetchedSecret, ManagerError } from '../../src/secret-managers/manager.ts'

const secret = (content: FetchedSecret['content']): FetchedSecret => ({ content, version: null })
const pick = (content: FetchedSecret['content'], key: string | null) => pickField(secret(content), key)

describe('without secret_key', () => {
  test.each<[string, FetchedSecret['content'], string, 'utf-8' | 'base64']>([
    ['text comes as it is', ' sk-1\r\n ', ' sk-1\r\n ', 'utf-8'],
    ['an empty text too', '', '', 'utf-8'],
    ['JSON text is not written anew', '{"a" : 1.0}', '{"a" : 1.0}', 'utf-8'],
    ['bytes come in base64', new Uint8Array([0, 255, 104, 105]), 'AP9oaQ==', 'base64'],
    [
      'a view of a longer buffer gives its own bytes alone',
      new Uint8Array([1, 2, 3, 4]).subarray(1, 3),
      'AgM=',
      'base64',
    ],
    [
      'the map of a Vault path comes as JSON',
      { user: 'u', n: JSON.rawJSON('9007199254740993') },
      '{"user":"u","n":9007199254740993}',
      'utf-8',
    ],
  ])('%s', (_name, content, value, encoding) => {
    expect(pick(content, null)).toEqual({ value, encoding })
  })
})

describe('with secret_key', () => {
  test.each<[string, FetchedSecret['content'], string, string]>([
    ['a string as text', '{"key":"sk-\\u00e9\\n"}', 'key', 'sk-é\n'],
    ['an empty string too', '{"key":""}', 'key', ''],
    ['a number as text', '{"key":-1.5}', 'key', '-1.5'],
    ['an integer beyond 2^53 keeps its digits', '{"key":9007199254740993}', 'key', '9007199254740993'],
    ['so it does in a Vault map', { key: JSON.rawJSON('9007199254740993') }, 'key', '9007199254740993'],
    ['and below an object', '{"key":{"n":[12345678901234567890]}}', 'key', '{"n":[12345678901234567890]}'],
    ['false is a value', '{"key":false}', 'key', 'false'],
    ['zero is a value', '{"key":0}', 'key', '0'],
    ['an object as JSON', '{"key":{"b":1,"a":null}}', 'key', '{"b":1,"a":null}'],
    ['an array as JSON', '{"key":["x",2]}', 'key', '["x",2]'],
    ['a key with dots is one name', '{"a.b":"dotted","a":{"b":"nested"}}', 'a.b', 'dotted'],
    ['an empty name is a name', '{"":"v"}', '', 'v'],
    ['an own __proto__ is a field', '{"__proto__":"v"}', '__proto__', 'v'],
    ['the last of two counts', '{"key":"first","key":"last"}', 'key', 'last'],
  ])('%s', (_name, content, key, value) => {
    expect(pick(content, key)).toEqual({ value, encoding: 'utf-8' })
  })

  test.each<[string, FetchedSecret['content'], string, string]>([
    ['a field that is not there', '{"a":"v"}', 'b', 'manager_field_missing'],
    ['a null', '{"a":null}', 'a', 'manager_field_missing'],
    ['an inherited name', '{"a":"v"}', 'toString', 'manager_field_missing'],
    ['__proto__ that nobody wrote', '{"a":"v"}', '__proto__', 'manager_field_missing'],
    ['an inherited name of a Vault map', { a: 'v' }, 'constructor', 'manager_field_missing'],
    ['a field below another', '{"a":{"b":"v"}}', 'a.b', 'manager_field_missing'],
    ['text', 'sk-canary', 'a', 'manager_not_json'],
    ['an empty text', '', 'a', 'manager_not_json'],
    ['half an object', '{"a":"canary', 'a', 'manager_not_json'],
    ['a JSON string', '"canary"', 'length', 'manager_not_json'],
    ['a JSON array', '["canary"]', '0', 'manager_not_json'],
    ['null', 'null', 'a', 'manager_not_json'],
    ['a long number', '12345678901234567890', 'rawJSON', 'manager_not_json'],
    ['bytes, JSON or not', Buffer.from('{"a":"canary"}'), 'a', 'manager_binary'],
    ['an object nested too deep', deep('{"a":'), 'a', 'manager_not_json'],
    ['an array nested too deep', `{"a":${deep('[')}}`, 'a', 'manager_not_json'],
    ['a long number nested too deep', `{"a":${deep('[')},"b":12345678901234567890}`, 'a', 'manager_not_json'],
    ['a Vault map nested too deep', JSON.parse(deep('{"a":')), 'a', 'manager_not_json'],
  ])('%s is told apart, and the secret is not in the error', (_name, content, key, failure) => {
    const error = thrownBy(() => pick(content, key))
    expect(error).toBeInstanceOf(ManagerError)
    expect(error).toMatchObject({ step: 'field', failure })
    expect(`${(error as Error).message}${(error as Error).cause ?? ''}`).not.toMatch(/canary|404|not found/i)
  })
})

test('the field beside one that is nested too deep is given', () => {
  expect(pick(`{"a":${deep('[')},"b":"v"}`, 'b').value).toBe('v')
})

test('every string that JSON can hold comes back as it was', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.string({ unit: 'binary' })), fc.string(), (fields, other) => {
      const content = JSON.stringify(fields)
      for (const [key, value] of Object.entries(fields)) expect(pick(content, key).value).toBe(value)
      if (!Object.hasOwn(fields, other)) expect(() => pick(content, other)).toThrow(ManagerError)
    }),
  )
})

test('nobody can make us write for seconds what is nested a hundred thousand times', () => {
  const startedAt = performance.now()
  expect(() => pick(deep('{"a":'), 'a')).toThrow(ManagerError)
  expect(() => pick(JSON.parse(deep('{"a":')), null)).toThrow(ManagerError)
  expect(performance.now() - startedAt).toBeLessThan(800)
})

test('a secret is parsed once, however often it is asked', () => {
  const kept = secret(JSON.stringify(Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`k${i}`, 'v']))))
  const startedAt = performance.now()
  pickField(kept, 'k1')
  const once = performance.now() - startedAt
  for (let i = 0; i < 200; i++) pickField(kept, 'k2')
  expect(performance.now() - startedAt - once).toBeLessThan(Math.max(50, once * 20))
})

function deep(open: string): string {
  const close = open === '[' ? ']' : '}'
  return open.repeat(150_000) + (open === '[' ? '' : '1') + close.repeat(150_000)
}

function thrownBy(work: () => unknown): unknown {
  try {
    work()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}
