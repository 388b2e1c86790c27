// A sentence of the server: what is between backticks is code.
export const Prose = ({ text }: { text: string }) => (
  <>{text.split('`').map((part, n) => (n % 2 === 1 ? <code key={n}>{part}</code> : part))}</>
);
