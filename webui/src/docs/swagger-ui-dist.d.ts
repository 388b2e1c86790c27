// Types of the part of Swagger UI that main.ts uses; the package contains none.
declare module 'swagger-ui-dist/swagger-ui-es-bundle.js' {
  export default function SwaggerUI(options: {
    readonly url: string;
    readonly dom_id: string;
    readonly validatorUrl: 'none';
    readonly deepLinking: boolean;
    readonly displayOperationId: boolean;
    readonly displayRequestDuration: boolean;
    readonly defaultModelsExpandDepth: number;
    readonly docExpansion: 'list' | 'full' | 'none';
    readonly filter: boolean;
    readonly queryConfigEnabled: boolean;
    readonly tryItOutEnabled: boolean;
    readonly plugins: readonly (() => object)[];
  }): unknown;
}
