/** Migrations are embedded: `import text from './0001_init.sql' with { type: 'text' }`. */
declare module '*.sql' {
  const text: string
  export default text
}
