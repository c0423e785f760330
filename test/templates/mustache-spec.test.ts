import { describe, expect, test } from 'bun:test'
import { compileTemplate } from '../../src/templates/template.ts'
import { SPEC_CASES } from './mustache-spec.ts'
import { partialsOf } from './support.ts'

describe('the public Mustache specification, core modules', () => {
  test.each(SPEC_CASES.map((one) => [one.name, one] as const))(
    '%s',
    (_name, { template, data, partials, expected }) => {
      const find = partialsOf(partials ?? {})
      expect(compileTemplate(template, false, 'text', find).fill(data, {})).toBe(expected)
    },
  )

  test.each(SPEC_CASES.filter((one) => one.partials === undefined).map((one) => [one.name, one] as const))(
    'the text of a private partial: %s',
    (_name, { template, data, expected }) => {
      const compiled = compileTemplate('{{>>template_text}}', false, 'text', partialsOf({}))
      expect(compiled.fill({ ...data, template_text: template }, {})).toBe(expected)
    },
  )

  test.each(SPEC_CASES.map((one) => [one.name, one] as const))(
    'a string of a chat template: %s',
    (_name, { template, data, partials, expected }) => {
      const text = JSON.stringify([{ role: 'user', content: template }])
      const compiled = compileTemplate(text, false, 'chat', partialsOf(partials ?? {}))
      expect(compiled.fill(data, {})).toEqual([{ role: 'user', content: expected }])
    },
  )
})
