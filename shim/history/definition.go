package history

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"

	"github.com/muster-agent/muster/appdef"
)

// Definition is an App as app.json has it. Its secret values are still in it.
func Definition(app appdef.App) ([]byte, error) {
	def, err := appdef.Encode(app)
	if err != nil {
		return nil, err
	}
	packed, err := base64.StdEncoding.DecodeString(def)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// decode reads an app.json.
func decode(text []byte) (appdef.App, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(text)
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return appdef.App{}, err
	}
	return appdef.Decode(base64.StdEncoding.EncodeToString(b.Bytes()))
}
