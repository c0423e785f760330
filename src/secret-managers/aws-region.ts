/**
 * The regions of each AWS partition, as the SDK knows them: it builds a host name from whatever text it gets, so that
 * `evil` would lead to `secretsmanager.evil.amazonaws.com` (decision 49).
 */
const PARTITIONS: readonly RegExp[] = [
  /^(?:us|eu|ap|sa|ca|me|af|il|mx)-[a-z]+-\d+$/,
  /^cn-[a-z]+-\d+$/,
  /^eusc-de-[a-z]+-\d+$/,
  /^us-(?:gov|iso|isob|isof)-[a-z]+-\d+$/,
  /^eu-isoe-[a-z]+-\d+$/,
]

/** Whether a text is the name of a region, known today or not. */
export const isAwsRegion = (text: string): boolean => PARTITIONS.some((pattern) => pattern.test(text))
