import { type TSchema, Type } from '@sinclair/typebox'

export function section<T extends Record<string, TSchema>>(fields: T) {
  return Type.Object(fields, { additionalProperties: false })
}

export function path(description: string, value = '') {
  // what has no default may stay empty
  const pattern = value === '' ? '^(/.*)?$' : '^/.+$'
  return Type.String({ default: value, pattern, description, expects: 'an absolute path' })
}

/** Secrets come by reference only; `src/config/references.ts` reads them. */
export function reference(description: string, value = '') {
  return Type.String({
    default: value,
    description: `${description} (file:/path, env:NAME or credential:name)`,
    reference: true,
  })
}

export function list(description: string, value: string[], minItems = 0) {
  return Type.Array(Type.String({ minLength: 1 }), { default: value, description, ...(minItems > 0 && { minItems }) })
}

export function bytes(value: number, of: string) {
  return Type.Integer({ default: value, minimum: 1024, maximum: 33_554_432, description: `most bytes of ${of}` })
}

export function oneOf<const T extends string>(values: readonly T[], value: NoInfer<T>, description: string) {
  return Type.Union(
    values.map((each) => Type.Literal(each)),
    { default: value, description },
  ) as unknown as ReturnType<typeof Type.Unsafe<T>>
}
