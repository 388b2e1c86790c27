// Text with sizes without trailing zeros, which server and page write differently: "3 MiB" of
// "3.00 MiB". For both sides of a comparison.
export const asOnPage = (text: string): string =>
  text.replace(/(\d+)\.(\d*?)0+(?= (?:[KMGT]i)?B\b)/g, (_, whole: string, part: string) =>
    part === '' ? whole : `${whole}.${part}`,
  );
