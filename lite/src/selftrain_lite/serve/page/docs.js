"use strict";
SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  validatorUrl: null, // it would ask a server on the internet
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
});
