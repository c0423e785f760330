import type { SQLiteColumn, SQLiteTable } from 'drizzle-orm/sqlite-core'
import type { Tables } from '../../schema/db/tables.ts'
import type { SealedPlace } from './cipher.ts'

/** A column of values that a data key seals; `name` says which one to people and in a value's authenticated place. */
export interface SealedColumn {
  table: SQLiteTable
  name: { table: string; column: string }
  id: SQLiteColumn
  sealed: SQLiteColumn
  organisationId: SQLiteColumn
  /** the column as a value of `set` */
  set(sealed: Buffer): Record<string, Buffer>
}

/** Every column that a data key seals: what is missing here stays under its old key for ever when that is rotated. */
export const sealedColumns = ({ idempotentAnswers, secretReferences }: Tables): readonly SealedColumn[] => [
  {
    table: idempotentAnswers,
    name: { table: 'idempotent_answers', column: 'sealed_answer' },
    id: idempotentAnswers.id,
    sealed: idempotentAnswers.sealedAnswer,
    organisationId: idempotentAnswers.organisationId,
    set: (sealedAnswer) => ({ sealedAnswer }),
  },
  {
    table: secretReferences,
    name: { table: 'secret_references', column: 'auth_config' },
    id: secretReferences.id,
    sealed: secretReferences.authConfig,
    organisationId: secretReferences.organisationId,
    set: (authConfig) => ({ authConfig }),
  },
]

export const placeIn = ({ name }: SealedColumn, rowId: string, organisationId: string): SealedPlace => ({
  ...name,
  rowId,
  organisationId,
})
