import { describe, expect, test } from 'bun:test'
import { createRequire } from 'node:module'
import type { ManagerType } from '../../schema/api/secret-references.ts'
import { isAwsRegion } from '../../src/secret-managers/aws-region.ts'
import { regionOfArn, secretPathComplaint } from '../../src/secret-managers/secret-path.ts'

// What a path, or a region, is as a text: the SDKs send most of what they are given (SM-8 to SM-10).

const ARN = 'arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/openai-AbCdEf'

describe('a path that its manager can have', () => {
  const GOOD: { managerType: ManagerType; path: string; region?: string }[] = [
    { managerType: 'aws_sm', path: 'prod/llm/openai' },
    { managerType: 'aws_sm', path: 'a_b+c=d.e@f-g/h' },
    { managerType: 'aws_sm', path: 'x'.repeat(512) },
    { managerType: 'aws_sm', path: ARN },
    { managerType: 'aws_sm', path: ARN, region: 'eu-west-1' },
    { managerType: 'aws_sm', path: 'arn:aws-us-gov:secretsmanager:us-gov-west-1:123456789012:secret:a' },
    {
      managerType: 'aws_sm',
      path: 'arn:aws-cn:secretsmanager:cn-north-1:123456789012:secret:a-AbCdEf',
      region: 'cn-north-1',
    },
    { managerType: 'azure_kv', path: 'openai-key' },
    { managerType: 'azure_kv', path: '0' },
    { managerType: 'azure_kv', path: 'x'.repeat(127) },
    { managerType: 'azure_kv', path: `openai-key/${'0aF9'.repeat(8)}` },
    { managerType: 'hashicorp_vault', path: 'secret/openai' },
    { managerType: 'hashicorp_vault', path: 'secret/data/team a/openai' },
    { managerType: 'hashicorp_vault', path: 'team/kv/ключ.v2' },
    { managerType: 'hashicorp_vault', path: 'kv/...' },
  ]
  test.each(GOOD)('$managerType $path', ({ managerType, path, region }) => {
    expect(secretPathComplaint(managerType, path, region)).toBeUndefined()
  })
})

describe('a path that leads elsewhere, or nowhere', () => {
  const BAD: { managerType: ManagerType; path: string; says: string; region?: string }[] = [
    { managerType: 'aws_sm', path: 'a b', says: 'name of a secret' },
    { managerType: 'aws_sm', path: 'a?x', says: 'name of a secret' },
    { managerType: 'aws_sm', path: 'a\\b', says: 'name of a secret' },
    { managerType: 'aws_sm', path: 'a\nb', says: 'name of a secret' },
    { managerType: 'aws_sm', path: 'x'.repeat(513), says: 'name of a secret' },
    {
      managerType: 'aws_sm',
      path: ' arn:aws:secretsmanager:eu-west-1:123456789012:secret:a',
      says: 'name of a secret',
    },
    { managerType: 'aws_sm', path: ARN, says: 'another region', region: 'eu-west-2' },
    { managerType: 'aws_sm', path: ARN.replace('eu-west-1', 'evil'), says: 'must be an ARN' },
    { managerType: 'aws_sm', path: ARN.replace('123456789012', '12345'), says: 'must be an ARN' },
    { managerType: 'aws_sm', path: ARN.replace(':secret:', ':key:'), says: 'must be an ARN' },
    { managerType: 'aws_sm', path: ARN.replace('secretsmanager', 'iam'), says: 'must be an ARN' },
    { managerType: 'aws_sm', path: `${ARN}\n`, says: 'must be an ARN' },
    { managerType: 'aws_sm', path: 'arn:aws:secretsmanager', says: 'must be an ARN' },
    { managerType: 'azure_kv', path: 'a_b', says: 'must be the name' },
    { managerType: 'azure_kv', path: 'a/b', says: 'must be the name' },
    { managerType: 'azure_kv', path: '../keys/a', says: 'must be the name' },
    { managerType: 'azure_kv', path: 'a?api-version=1', says: 'must be the name' },
    { managerType: 'azure_kv', path: 'https://v.vault.azure.net/secrets/a', says: 'must be the name' },
    { managerType: 'azure_kv', path: 'x'.repeat(128), says: 'must be the name' },
    { managerType: 'azure_kv', path: `a/${'0'.repeat(31)}`, says: 'must be the name' },
    { managerType: 'azure_kv', path: 'a\n', says: 'must be the name' },
    { managerType: 'hashicorp_vault', path: 'secret', says: 'must be MOUNT/PATH' },
    { managerType: 'hashicorp_vault', path: '/secret/a', says: 'must be MOUNT/PATH' },
    { managerType: 'hashicorp_vault', path: 'secret/a/', says: 'must be MOUNT/PATH' },
    { managerType: 'hashicorp_vault', path: 'secret//a', says: 'must be MOUNT/PATH' },
    { managerType: 'hashicorp_vault', path: 'secret/data/../../sys/seal-status', says: 'segments . and ..' },
    { managerType: 'hashicorp_vault', path: '../sys/health', says: 'segments . and ..' },
    { managerType: 'hashicorp_vault', path: 'secret/./a', says: 'segments . and ..' },
    { managerType: 'hashicorp_vault', path: 'secret/%2e%2e/a', says: 'must not contain' },
    { managerType: 'hashicorp_vault', path: 'secret/a?version=1', says: 'must not contain' },
    { managerType: 'hashicorp_vault', path: 'secret/a#b', says: 'must not contain' },
    { managerType: 'hashicorp_vault', path: 'secret\\a/b', says: 'must not contain' },
    { managerType: 'hashicorp_vault', path: 'secret/a\nb', says: 'must not contain' },
    { managerType: 'hashicorp_vault', path: 'secret/a\u0085b', says: 'must not contain' },
  ]
  test.each(BAD)('$managerType $path', ({ managerType, path, says, region }) => {
    expect(secretPathComplaint(managerType, path, region)).toContain(says)
  })
})

test('the region of an ARN is told, of a name none', () => {
  expect([ARN, 'prod/openai'].map(regionOfArn)).toEqual(['eu-west-1', undefined])
})

describe('regions', () => {
  test('are those that the SDK knows, and those of the same partitions to come', () => {
    const { partitions } = sdkPartitions()
    const names = partitions.flatMap(({ regions }) => Object.keys(regions)).filter((name) => !/global/.test(name))
    expect(names.length).toBeGreaterThan(30)
    expect(names.filter((name) => !isAwsRegion(name))).toEqual([])
    // A partition that is new to us, when the SDK is updated.
    expect(partitions).toHaveLength(8)
    expect(['eu-north-7', 'us-gov-north-1'].every(isAwsRegion)).toBe(true)
  })

  test.each([
    'evil',
    '',
    'eu-west',
    'eu-west-1.evil.com',
    'eu-west-1/..',
    'eu-west-1\n',
    'EU-WEST-1',
    'xx-west-1',
    'eu_west_1',
    'aws-global',
    'eu-west-1@evil',
  ])('are no other texts: %j', (text) => {
    expect(isAwsRegion(text)).toBe(false)
  })
})

/** The table that the SDK builds host names from. */
function sdkPartitions(): { partitions: { regions: Record<string, object> }[] } {
  const core = createRequire(import.meta.url).resolve('@aws-sdk/core/package.json')
  const table = 'dist-es/submodules/client/util-endpoints/lib/aws/partitions.js'
  return createRequire(import.meta.url)(core.replace('package.json', table)).partitionsInfo
}
