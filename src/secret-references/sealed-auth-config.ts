import type { AuthConfig } from '../../schema/api/secret-references.ts'
import { open, type Sealed, type SealedPlace, seal } from '../crypto/cipher.ts'
import type { Keyring } from '../crypto/keyring.ts'
import type { SecretReferenceRow } from './store.ts'

type Place = Pick<SecretReferenceRow, 'id' | 'organisationId'>

/** Seals an auth_config whole (decision 41), for the row it belongs to. */
export const sealAuthConfig = ({ dataKey }: Keyring, authConfig: AuthConfig, place: Place): Sealed =>
  seal(JSON.stringify(authConfig), dataKey, placeOf(place))

/** @throws GatehouseError `internal` when the value was changed, or is that of another row (SE-3) */
export const openAuthConfig = (
  { dataKeys }: Keyring,
  { authConfig, ...place }: Pick<SecretReferenceRow, 'id' | 'organisationId' | 'authConfig'>,
): AuthConfig => JSON.parse(open(authConfig, (id) => dataKeys.get(id), placeOf(place)).toString()) as AuthConfig

const placeOf = ({ id, organisationId }: Place): SealedPlace => ({
  table: 'secret_references',
  column: 'auth_config',
  rowId: id,
  organisationId,
})
