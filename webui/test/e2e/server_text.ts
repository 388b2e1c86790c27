// Sizes in sentences of the server, as the page formats sizes: "3 MiB" of "3.00 MiB".
export const asOnPage = (text: string): string =>
  text.replace(/(\d+)\.(\d*?)0+(?= (?:[KMGT]i)?B\b)/g, (_, whole: string, part: string) =>
    part === '' ? whole : `${whole}.${part}`,
  );
